"""What a body asks for beyond its model, where the gate or the tracker must know. Plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunnerAsk:
    """What an Ollama request says about the runner that is to serve it.

    Ollama loads a model anew when its runner options change, so a model that is resident with others is no
    credit. Source: the options that make its scheduler reload (num_ctx, num_batch, num_gpu, main_gpu,
    use_mmap, num_thread, draft_num_predict, and the top-level `shift`), run on 0.17.4 where it has them.

    Attributes:
        v1: the request came on a route under /v1, where Ollama reads no options at all.
        num_ctx: the context it sets, in tokens; None: it sets none.
        other_options: it sets any other of those options.
    """

    v1: bool
    num_ctx: int | None = None
    other_options: bool = False


@dataclass(frozen=True, slots=True)
class PromptAsk:
    """What a ComfyUI submission says about itself.

    Attributes:
        prompt_id: the id that its body has now: its own where that is a UUID in canonical lower case, else a
            new one.
        client_id: whose progress it is; None: nobody's.
        models: what its loaders name, in the order of the graph; None among them: a name that only the run of
            the graph will tell.
        own: the id is the borrower's.
        from_end: where the id begins in the body that is forwarded, in bytes from its end.
    """

    prompt_id: str
    client_id: str | None
    models: tuple[str | None, ...] = ()
    own: bool = False
    from_end: int = 0
