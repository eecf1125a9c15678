"""`@frozen`: a value. What `@dataclass(frozen=True, slots=True)` gives, at a third of its price.

A node declares more than a hundred values, and the standard decorator compiles eight methods for
each of them with `exec`: that was a quarter of a node's start. Here `__init__` alone is compiled;
comparing, hashing, showing and refusing assignment are ordinary functions over the fields.

To everyone who asks these are dataclasses: `fields`, `replace`, `asdict`, `is_dataclass`, `match`,
`field(...)` and `__post_init__` work as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    # A missing docstring would be made up from the signature, which costs more than the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    declared = fields(made)  # type: ignore[arg-type]
    methods: dict[str, Callable[..., Any]] = {
        "__init__": _initializer(made, declared),
        "__repr__": _shower([item.name for item in declared if item.repr]),
        "__setattr__": _refuse_to_assign,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _get_state,
        "__setstate__": _set_state,
    }
    compared = _values_of([item.name for item in declared if item.compare])
    if "__eq__" not in cls.__dict__:
        methods |= {"__eq__": _equality(compared), "__hash__": _hash(compared)}
    for name, method in methods.items():
        # What the class writes itself stays; `__hash__` is None where `__eq__` is written.
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made


def _initializer(cls: type, declared: tuple[Field[Any], ...]) -> Callable[..., None]:
    """The one method that is compiled: hot paths make values, so it must not loop."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    parameters, body = ["self"], []
    for number, item in enumerate(declared):
        if not item.init:
            continue
        value, default = item.name, ""
        if item.default_factory is not MISSING:
            known[f"_{number}"] = item.default_factory
            default, value = "=_MISSING", f"_{number}() if {value} is _MISSING else {value}"
        elif item.default is not MISSING:
            known[f"_{number}"] = item.default
            default = f"=_{number}"
        parameters.append(item.name + default)
        body.append(f"_set(self, {item.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    exec(source, known)
    initializer: Callable[..., None] = known["__init__"]
    initializer.__qualname__ = f"{cls.__qualname__}.__init__"
    return initializer


def _values_of(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else lambda _: ()


def _equality(values: Callable[[object], object]) -> Callable[[object, object], Any]:
    def __eq__(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return __eq__


def _hash(values: Callable[[object], object]) -> Callable[[object], int]:
    def __hash__(self: object) -> int:
        return hash(values(self))

    return __hash__


def _shower(names: list[str]) -> Callable[[object], str]:
    def __repr__(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def _refuse_to_assign(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    """For `copy`, which could not assign to the fields of the copy."""
    return [getattr(self, item.name) for item in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
