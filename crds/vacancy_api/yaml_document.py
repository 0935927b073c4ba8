"""One YAML document as plain data, with the line of every field and every error of the notation at once.

Invariant: text means here what it means to kubectl. PyYAML's own loader reads `22:00` as the number 1320 and
a time stamp as an object, and takes the last of two equal keys without a word; each would make a manifest
mean something else alone than in a cluster. So nodes are composed by PyYAML and made into values here.
Rejected: loading twice, once for values and once for positions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from vacancy_api.problems import FieldError, path_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_api.loose import Loc

MAX_BYTES = 256 * 1024
_MAX_NODES = 50_000
_MAX_DEPTH = 40
_CORE = "tag:yaml.org,2002:"
_TRUE = frozenset({"y", "yes", "true", "on"})
_FALSE = frozenset({"n", "no", "false", "off"})


class _Notation(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML up to nodes, with the implicit types of kubectl's reader."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)


def _implicit(tag: str, shape: str, first: str) -> None:
    _Notation.add_implicit_resolver(f"{_CORE}{tag}", re.compile(rf"(?:{shape})\Z"), list(first) or [""])


_implicit(
    "bool",
    "[yY]|[nN]|" + "|".join(f"{w}|{w.title()}|{w.upper()}" for w in sorted(_TRUE | _FALSE)),
    "yYnNtTfFoO",
)
_implicit("int", r"[-+]?(?:0|[1-9][0-9_]*|0[0-7_]+|0o[0-7_]+|0b[01_]+|0x[0-9a-fA-F_]+)", "-+0123456789")
_implicit("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789")
_implicit("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.")
_implicit("null", "~|null|Null|NULL", "~nN")
_implicit("null", "", "")
_implicit("merge", "<<", "<")


@dataclass(slots=True)
class Document:
    """What a file says, as far as it could be read, and what is wrong with how it says it."""

    data: Any = None
    errors: list[FieldError] = field(default_factory=list)
    lines: dict[Loc, int] = field(default_factory=dict)
    spelled: dict[Loc, str] = field(default_factory=dict)
    """How scalars that are not text were written."""

    def line_of(self, loc: Loc) -> int | None:
        """Line of a field, or of the nearest thing above it that is in the file."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc)


def read_document(source: str | bytes) -> Document:
    """Reads the one document of a file. Never raises: what is wrong is in `errors`."""
    document = Document()
    text = _decoded(source, document)
    roots = _compose(text, document) if text is not None else []
    if len(roots) > 1:
        line = roots[1].start_mark.line + 1
        document.errors.append(
            FieldError("", f"holds {len(roots)} documents: keep one LendingHost in a file", line)
        )
    if not roots and not document.errors:
        document.errors.append(FieldError("", "is empty: write a LendingHost manifest"))
    if roots:
        document.data = _Values(document).of(roots[0], (), 0)
    return document


def _decoded(source: str | bytes, document: Document) -> str | None:
    problem = None
    text = ""
    if len(source) > MAX_BYTES:
        problem = f"is larger than {MAX_BYTES // 1024} KiB: a manifest is a few KiB"
    elif isinstance(source, str):
        text = source
    else:
        try:
            text = source.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = source.count(b"\n", 0, error.start) + 1
            problem = f"is not UTF-8 (line {line}, byte {error.start}): save it as UTF-8"
    if problem is None and not text.strip():
        problem = "is empty: write a LendingHost manifest"
    if problem is not None:
        document.errors.append(FieldError("", problem))
        return None
    return text


def _compose(text: str, document: Document) -> list[yaml.Node]:
    try:
        notation = _Notation(text)
        found: list[yaml.Node] = []
        while notation.check_node():
            node = notation.get_node()
            found += [node] if node is not None else []
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        document.errors.append(FieldError("", "holds a control character: remove it", line))
    except yaml.MarkedYAMLError as error:
        document.errors.append(_syntax_error(error))
    except RecursionError:
        document.errors.append(FieldError("", f"is nested deeper than {_MAX_DEPTH} levels"))
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        document.errors.append(FieldError("", f"is not valid YAML: {error}"))
    else:
        return [node for node in found if not _is_blank(node)]
    return []


def _is_blank(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_CORE}null"


def _syntax_error(error: yaml.MarkedYAMLError) -> FieldError:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "cannot be read"
    hint = "; indent with spaces, not tabs" if "'\\t'" in problem else ""
    context = f" {error.context}" if error.context and error.problem else ""
    return FieldError(
        "", f"is not valid YAML: {problem}{context}{hint}", mark.line + 1 if mark is not None else None
    )


class _Values:
    """Makes nodes into values, and notes lines, spellings and errors on the way."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._left = _MAX_NODES
        self._above: set[int] = set()

    def of(self, node: yaml.Node, loc: Loc, depth: int) -> Any:
        """The value of a node; None where it cannot be had."""
        self._document.lines.setdefault(loc, node.start_mark.line + 1)
        self._left -= 1
        if self._left < 0:
            if self._left == -1:
                self._say((), f"holds more than {_MAX_NODES} values", node)
            return None
        if depth > _MAX_DEPTH or id(node) in self._above:
            self._say(loc, f"is nested deeper than {_MAX_DEPTH} levels, or holds itself", node)
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, loc)
        if node.tag not in {f"{_CORE}map", f"{_CORE}seq"}:
            self._say(loc, f"has the tag {node.tag!r}: remove it", node)
            return None
        self._above.add(id(node))
        try:
            return (
                self._mapping(node, loc, depth)
                if isinstance(node, yaml.MappingNode)
                else self._list(node, loc, depth)
            )
        finally:
            self._above.discard(id(node))

    def _say(self, loc: Loc, message: str, node: yaml.Node) -> None:
        self._document.errors.append(FieldError(path_of(loc), message, node.start_mark.line + 1))

    def _list(self, node: yaml.Node, loc: Loc, depth: int) -> list[Any]:
        return [self.of(item, (*loc, index), depth + 1) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.Node, loc: Loc, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, loc)
            if key is None:
                continue
            inner = (*loc, key)
            if key in result:
                self._say(
                    inner,
                    f"is there twice (first in line {self._document.lines[inner]}): remove one",
                    key_node,
                )
                continue
            self._document.lines[inner] = key_node.start_mark.line + 1
            result[key] = self.of(value_node, inner, depth + 1)
        return result

    def _key(self, node: yaml.Node, loc: Loc) -> str | None:
        if node.tag == f"{_CORE}merge":
            self._say(loc, "holds a merge key (<<): write the fields out", node)
        elif not isinstance(node, yaml.ScalarNode):
            self._say(loc, "holds a key that is not text", node)
        elif node.tag != f"{_CORE}str":
            self._say(
                loc, f'holds the key {node.value[:40]}, which is not text: write "{node.value[:40]}"', node
            )
        else:
            value = self._string(node, loc)
            return value if isinstance(value, str) else None
        return None

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> Any:
        kind = node.tag.removeprefix(_CORE)
        make = _SCALARS.get(kind) if node.tag.startswith(_CORE) else None
        if kind == "str":
            return self._string(node, loc)
        if make is None:
            self._say(loc, f"has the tag {node.tag!r}: remove it", node)
            return None
        self._document.spelled[loc] = node.value
        try:
            return make(node.value)
        except ValueError:
            self._say(loc, f"cannot be read as {kind}: {node.value[:40]!r}", node)
            return None

    def _string(self, node: yaml.Node, loc: Loc) -> str | None:
        text = str(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._say(loc, "holds half of a surrogate pair: remove the escape", node)
            return None
        return text


def _bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _int(text: str) -> int:
    plain = text.replace("_", "")
    return int(re.sub(r"^([-+]?)0(?=[0-7])", r"\g<1>0o", plain), 0)


def _float(text: str) -> float:
    return float(re.sub(r"(?i)^([-+]?)\.(inf|nan)$", r"\1\2", text))


def _null(_text: str) -> None:
    return None


_SCALARS: dict[str, Callable[[str], Any]] = {"bool": _bool, "int": _int, "float": _float, "null": _null}
