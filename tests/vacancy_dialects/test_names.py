"""Names of models, against a small model of the reader that Ollama has."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vacancy_dialects import canonical_model
from vacancy_dialects.names import canonical_ollama, is_cloud, names_a_source


@dataclass(frozen=True)
class Name:
    host: str
    namespace: str
    model: str
    tag: str


def last(text: str, mark: str) -> int:
    return text.rfind(mark)


def go_parse(text: str) -> Name | None:
    """The model of the four parts that 0.17.4 makes of a name, or None: not a name to it."""
    tag = "latest"
    if last(text, ":") > last(text, "/"):
        at = last(text, ":")
        text, tag = text[:at] or "!", text[at + 1 :] or "!"
    host, namespace = "registry.ollama.ai", "library"
    model = text
    if "/" in text:
        at = last(text, "/")
        text, model = text[:at] or "!", text[at + 1 :] or "!"
        namespace = text
        if "/" in text:
            at = last(text, "/")
            text, namespace = text[:at] or "!", text[at + 1 :] or "!"
            host = text.split("://", 1)[1] or host if "://" in text else text
    parts = ((host, ".:", 350), (namespace, "", 80), (model, ".", 80), (tag, ".", 80))
    for part, marks, most in parts:
        if not re.fullmatch(rf"[A-Za-z0-9_][A-Za-z0-9_{re.escape(marks)}-]*", part) or len(part) > most:
            return None
    return Name(host.lower(), namespace.lower(), model.lower(), tag.lower())


PIECES = st.sampled_from(
    ["small", "Small", "huge", "latest", "LATEST", "7b", "library", "Library", "ns", "registry.ollama.ai",
     "hf.co", ":", "/", "://", "http", "https://", "", "-", "_", ".", "@", "K", "\u017f", "!", "a" * 81]
)  # fmt: skip
NAMES = st.lists(PIECES, max_size=8).map("".join)


@given(NAMES, NAMES)
def test_names_of_one_model_and_only_those_have_one_spelling(one: str, other: str) -> None:
    first, second = go_parse(one), go_parse(other)
    same = canonical_ollama(one) == canonical_ollama(other)
    if first is not None and second is not None:
        assert same == (first == second)
    elif first is not None or second is not None:
        assert not same


@given(NAMES)
def test_the_spelling_is_its_own(name: str) -> None:
    assert canonical_ollama(canonical_ollama(name)) == canonical_ollama(name)


@given(NAMES)
def test_the_spelling_names_the_same_model(name: str) -> None:
    if (parsed := go_parse(name)) is not None:
        assert go_parse(canonical_ollama(name)) == parsed


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("small", "small:latest"),
        ("SMALL:Latest", "small:latest"),
        ("library/small", "small:latest"),
        ("registry.ollama.ai/library/small:latest", "small:latest"),
        ("https://registry.ollama.ai/library/small", "small:latest"),
        ("http:///library/small", "small:latest"),
        ("Ns/Small:7B", "ns/small:7b"),
        ("hf.co/Org/Model.GGUF:Q4_K_M", "hf.co/org/model.gguf:q4_k_m"),
        ("localhost:5000/ns/small", "localhost:5000/ns/small:latest"),
        # A newer release trims; to an older one this is no name.
        (" small\u3000", "small:latest"),
        ("\x1csmall", "\x1csmall:latest"),
        ("small:", "small:"),
        (":latest", ":latest"),
        ("/small", "/small"),
        ("", ""),
    ],
)
def test_spellings(name: str, spelling: str) -> None:
    assert canonical_model("ollama", name) == spelling


@pytest.mark.parametrize("dialect", ["openai", "llamacpp", "comfyui", "chatterbox"])
def test_other_servers_compare_as_written(dialect: str) -> None:
    assert canonical_model(dialect, " Meta/Llama ") == " Meta/Llama "


@pytest.mark.parametrize(
    "name",
    ["m:cloud", "M:CLOUD", "ns/m:cloud", "m:120b-cloud", "m:120B-Cloud", " m:cloud ", "m: cloud",
     "m:x: cloud", "m-cloud", "hf.co/ns/m:q-cloud", "m:cloud\u00a0"],
)  # fmt: skip
def test_names_that_leave_the_machine(name: str) -> None:
    assert is_cloud(name)


@pytest.mark.parametrize(
    "name", ["m", "cloud", "cloud:latest", "m:clouds", "m:cloudy", "cloud/m", "m:cloud-7b"]
)
def test_names_that_stay(name: str) -> None:
    assert not is_cloud(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [("m:local", True), ("m:7b:LOCAL", True), ("m: local ", True), ("local", False), ("m:locals", False)],
)
def test_a_source_in_a_name(name: str, said: bool) -> None:
    assert names_a_source(name) == said
