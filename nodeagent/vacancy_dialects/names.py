"""Model names: one spelling for each model, and the names that leave the machine.

Invariant: two names that an Ollama server resolves to one model have one canonical form, and a name that it
cannot resolve never has the canonical form of one that it can. The failure this prevents: `Small:LATEST` gets
the default footprint while `small` has a measured one, and a borrower picks the smaller. Rejected: asking the
server (`/api/show`), which costs a round trip in the path of every request and answers for one moment only.

Source: Ollama's types/model/name.go (0.17.4; run) and internal/modelref (0.33, which also trims; read).
"""

from __future__ import annotations

from typing import Final

_HOST: Final = "registry.ollama.ai"
_NAMESPACE: Final = "library"
_TAG: Final = "latest"
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""White space as Go's strings.TrimSpace takes it off; Python's own strip takes off some more."""


def canonical_model(dialect: str, name: str) -> str:
    """The one spelling of `name` that footprints, contexts and what a server lists are compared by.

    Of Ollama: `[host/][namespace/]model:tag` in lower case, without the default host and namespace, with the
    tag always there. The names of other servers are compared as they are.
    """
    return canonical_ollama(name) if dialect == "ollama" else name


def canonical_ollama(name: str) -> str:
    """`canonical_model` of an Ollama name."""
    text = name.strip(_SPACE)
    if not text.isascii():
        return text  # no name to any release
    text = text.lower()
    path, tag = _tagged(text)
    *before, model = path.rsplit("/", 2)
    namespace = before[-1] if before else _NAMESPACE
    host = _host(before[0]) if len(before) > 1 else _HOST
    if not (host and namespace and model and tag):
        return text  # likewise, and not what becomes of a name that is one
    if host != _HOST:
        return f"{host}/{namespace}/{model}:{tag}"
    return f"{model}:{tag}" if namespace == _NAMESPACE else f"{namespace}/{model}:{tag}"


def is_cloud(name: str) -> bool:
    """Whether an Ollama name leaves the machine, signed as its owner: `model:cloud`, `model:tag-cloud`.

    A name without a tag that ends like that counts too: nobody should have to know how a release reads it.
    """
    text = name.strip(_SPACE).casefold()
    return text.endswith("-cloud") or _source(text) == "cloud"


def names_a_source(name: str) -> bool:
    """Whether an Ollama name ends in `:local`: newer releases take that off, older ones take it for a tag."""
    return _source(name.casefold()) == "local"


def _source(text: str) -> str:
    _, colon, source = text.rpartition(":")
    return source.strip(_SPACE) if colon else ""


def _tagged(text: str) -> tuple[str, str]:
    """The path and the tag; a colon before the last slash belongs to a host."""
    path, colon, tag = text.rpartition(":")
    return (path, tag) if colon and "/" not in tag else (text, _TAG)


def _host(text: str) -> str:
    """The host of `scheme://host`; an empty one after a scheme stands for the default (run on 0.17.4)."""
    _, scheme, host = text.partition("://")
    return (host or _HOST) if scheme else text
