"""The API's socket, which follows the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from vacancy_agent.admin.app import make_app
from vacancy_agent.store.errors import StoreError
from vacancy_agent.wiring.listeners import cannot_listen
from vacancy_agent.wiring.secret_files import CertificateError, certificate

if TYPE_CHECKING:
    from vacancy_agent.admin.running import Running
    from vacancy_agent.core.settings import AccessSettings
    from vacancy_agent.store.state import StateDir
    from vacancy_agent.wiring.secret_files import Certificate

GRACE_S = 1.0
"""For answers that are being written when the socket closes."""


class ApiServer:
    """One for an agent."""

    def __init__(self, agent: Running, state: StateDir) -> None:
        self._agent = agent
        self._state = state
        self._runner: web.AppRunner | None = None
        self._at: tuple[str, int, Certificate | None] | None = None

    async def follow(self, access: AccessSettings) -> list[str]:
        """Listen where these settings say.

        Returns:
            Why that cannot be, one line; where it listened before it still does, if the socket is another.
        """
        try:
            tls = certificate(self._state, access.tls_secret)
            wanted = (access.listen, access.api_port, tls)
            if wanted == self._at:
                return []
            context = tls.context() if tls is not None else None
        except (StoreError, CertificateError) as error:
            return [f"spec.access.tls.secretRef: {error}"]
        if self._at is not None and self._at[:2] == wanted[:2]:
            await self.close()  # only its certificate is another, and one socket cannot be bound twice
        runner = web.AppRunner(make_app(self._agent), access_log=None, shutdown_timeout=GRACE_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, access.listen, access.api_port, ssl_context=context).start()
        except OSError as error:
            await runner.cleanup()
            path = "spec.access.apiPort"
            return [cannot_listen(error, path, "the API", access.listen, access.api_port)]
        await self.close()
        self._runner, self._at = runner, wanted
        self._agent.host.tell("api", address=access.listen, port=access.api_port)
        return []

    async def close(self) -> None:
        """Stop listening."""
        runner, self._runner, self._at = self._runner, None, None
        if runner is not None:
            await runner.cleanup()
