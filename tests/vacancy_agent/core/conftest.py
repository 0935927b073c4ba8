"""`VACANCY_EXAMPLES=1000` makes the property tests of the core look longer."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("core", max_examples=int(os.environ.get("VACANCY_EXAMPLES", "100")), deadline=None)
settings.load_profile("core")
