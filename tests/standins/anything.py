"""Plain data of any shape, for parsers that must take all of it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

KEYS = (
    "apiVersion", "kind", "metadata", "spec", "status", "name", "namespace", "labels", "resources",
    "upstreams",
    "type", "device", "capacity", "pressure", "mode", "thresholdPercent", "minFreeMiB", "models", "items",
    "default", "access", "apiPort", "limits", "maxBufferedBodyMiB", "schedule", "timeZone", "windows", "days",
    "from", "to", "target", "port", "resource", "alsoRequires", "dialect", "external", "address", "owner",
    "host", "tokens", "scopes", "sha256", "digest", "listen",
)  # fmt: skip
SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(
        ["vacancy.dev/v1alpha1", "LendingHost", "AgentConfig", "nvidia", "cpu", "ollama", "gpu", "30s"]
    )
)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=6),
    max_leaves=25,
)
