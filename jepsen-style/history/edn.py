"""The part of EDN that histories use: read exactly, written so that it reads back equal.

Keywords become `Keyword`, a `str`, so `event["type"]` finds `:type`; vectors and lists become
lists, sets frozensets. A tag is dropped and its form kept: Jepsen tags a whole operation
(`#jepsen.history.Op{...}`).
"""

from __future__ import annotations

import re
from typing import Any

from .history import HistoryError


class Keyword(str):
    """`:name`; equal to the plain string `name`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f":{self!s}"


TOKEN = re.compile(
    r"""[\s,]+|;[^\n]*            # commas are white space; a comment ends with its line
    |("(?:[^"\\]|\\.)*"           # string
    |\#\{|\#_|[\[\](){}]          # brackets
    |\#[A-Za-z][^\s,\[\](){}";]*  # tag
    |\\[^\s,\[\](){}";]+          # character
    |[^\s,\[\](){}";\#]+          # atom
    )""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "/": "/"}
CONSTANTS: dict[str, Any] = {"nil": None, "true": True, "false": False}
NAMED_CHARACTERS = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r"}
CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
NUMBER = re.compile(r"[+-]?(\d+)(N)?$|[+-]?\d+(\.\d+)?([eE][+-]?\d+)?M?$")
DISCARD = object()


def read_forms(text: str) -> list[Any]:
    """Every top-level form. Raises HistoryError with the line of the offence."""
    return [form for form, _ in read_forms_with_lines(text)]


def read_forms_with_lines(text: str) -> list[tuple[Any, int]]:
    """Every top-level form with the line it begins on (1-based)."""
    forms: list[tuple[Any, int]] = []
    stack: list[tuple[str, list[Any], int]] = []
    items: list[Any] = []
    atoms: dict[str, Any] = dict(CONSTANTS)
    top: list[int] = []
    position = 0
    scan = TOKEN.scanner(text).match  # type: ignore[attr-defined]
    pending_tags = 0
    while (match := scan()) is not None:
        position = match.end()
        token = match.group(1)
        if token is None:
            continue
        if token in atoms:
            value = atoms[token]
        elif token in CLOSES:
            stack.append((token, items, match.start()))
            items = []
            continue
        elif token in ("]", ")", "}"):
            if not stack or CLOSES[stack[-1][0]] != token:
                raise HistoryError(f"unexpected {token!r}", line=line_of(text, match.start()))
            opened, outer, start = stack.pop()
            value = close(opened, without_discarded(items), text, start)
            items = outer
            if not stack:
                top.append(start)
                items.append(value)
                continue
        elif token[0] == "#":
            if token == "#_":
                items.append(DISCARD)
                if not stack:
                    top.append(match.start())
            pending_tags += 1
            continue
        else:
            value = atom(token, text, match.start())
            if token[0] != '"':
                atoms[token] = value
        items.append(value)
        if not stack:
            top.append(match.start())
    if position != len(text):
        raise HistoryError(f"cannot read {text[position]!r}", line=line_of(text, position))
    if stack:
        raise HistoryError(f"{stack[-1][0]!r} is never closed", line=line_of(text, stack[-1][2]))
    line, seen = 1, 0
    skip = False
    for value, start in zip(items, top, strict=True):
        line += text.count("\n", seen, start)
        seen = start
        if value is DISCARD:
            skip = True
        elif skip:
            skip = False
        else:
            forms.append((value, line))
    return forms


def without_discarded(items: list[Any]) -> list[Any]:
    if DISCARD not in items:
        return items
    kept: list[Any] = []
    skip = 0
    for item in items:
        if item is DISCARD:
            skip += 1
        elif skip:
            skip -= 1
        else:
            kept.append(item)
    return kept


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def close(opened: str, items: list[Any], text: str, start: int) -> Any:
    if opened in "[(":
        return items
    if opened == "#{":
        return frozenset(freeze(item) for item in items)
    if len(items) % 2:
        raise HistoryError("a map with a key and no value", line=line_of(text, start))
    keys = items[::2]
    try:
        return dict(zip(keys, items[1::2], strict=True))
    except TypeError:
        return dict(zip(map(freeze, keys), items[1::2], strict=True))


def freeze(value: Any) -> Any:
    """The hashable twin of a value: lists become tuples, maps sorted pairs."""
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted(((freeze(k), freeze(v)) for k, v in value.items()), key=repr))
    if isinstance(value, set | frozenset):
        return frozenset(freeze(item) for item in value)
    return value


def atom(token: str, text: str, position: int) -> Any:
    first = token[0]
    if first == ":" and len(token) > 1:
        return Keyword(token[1:])
    if first == '"':
        return ESCAPE.sub(unescape, token[1:-1]) if "\\" in token else token[1:-1]
    if first == "\\":
        name = token[1:]
        return name if len(name) == 1 else NAMED_CHARACTERS.get(name, name)
    number = NUMBER.match(token)
    if number is not None:
        return int(token.rstrip("N")) if number.group(1) else float(token.rstrip("M"))
    if first.isalpha() or first in "*!_?$%&=<>+-./":
        return Keyword(token)  # a symbol; histories never tell it from a keyword
    raise HistoryError(f"cannot read {token!r}", line=line_of(text, position))


def unescape(match: re.Match[str]) -> str:
    escaped = match.group(1)
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return ESCAPES.get(escaped, escaped)


def write_form(value: Any) -> str:
    """One form on one line; `read_forms(write_form(v)) == [v]` (tuples come back as lists)."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Keyword):
        return f":{value!s}"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, dict):
        inner = ", ".join(f"{write_form(k)} {write_form(v)}" for k, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(write_form, value))}]"
    if isinstance(value, set | frozenset):
        return f"#{{{' '.join(sorted(map(write_form, value)))}}}"
    return repr(value)
