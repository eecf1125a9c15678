"""JSON Schema (2020-12) from Python's types, so that a document is described once.

`TypedDict` becomes an object without other keys, its docstring the description, and stands among
the components under its name; `Annotated[T, "text", Keywords(...)]` adds text and keywords.
"""

from __future__ import annotations

import inspect
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema = dict[str, Any]


class Keywords:
    """Of JSON Schema, to stand in an `Annotated`."""

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords


_PLAIN: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}


class Schemas:
    """Components by name, filled as types are asked for."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """Raises TypeError for what has no form in JSON."""
        if kind is Any or kind is object:
            return {}
        if kind in _PLAIN:
            return {"type": _PLAIN[kind]}
        if is_typeddict(kind):
            return self._component(kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(arguments)
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(one) for one in arguments]}
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is list:
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict and arguments[0] is str:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        raise TypeError(f"{kind} has no JSON schema")

    def _annotated(self, arguments: tuple[Any, ...]) -> Schema:
        schema = self.of(arguments[0])
        for extra in arguments[1:]:
            schema |= {"description": extra} if isinstance(extra, str) else extra.keywords
        return schema

    def _component(self, kind: Any) -> Schema:
        name = kind.__name__
        if name not in self.components:
            self.components[name] = {}  # Known already to a type that holds itself.
            hints = get_type_hints(kind, include_extras=True)
            self.components[name] = {
                "type": "object",
                "description": inspect.getdoc(kind) or name,
                "properties": {key: self.of(_bare(hint)) for key, hint in hints.items()},
                # Not by __required_keys__, which cannot read annotations that are text.
                "required": sorted(key for key, hint in hints.items() if _bare(hint) is hint),
                "additionalProperties": False,
            }
        return {"$ref": f"#/components/schemas/{name}"}


def _bare(hint: Any) -> Any:
    """Without NotRequired."""
    return get_args(hint)[0] if get_origin(hint) is NotRequired else hint
