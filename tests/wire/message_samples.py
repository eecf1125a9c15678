"""Generated messages: every field of a version set, to ordinary and to extreme values."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import random
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar
from uuid import UUID

from logboat.wire import ZERO_UUID, Message, Struct
from logboat.wire import coordinator_records as records
from logboat.wire.schema import Field

M = TypeVar("M", bound=Struct)

Narrow = Callable[[str, Field, random.Random], Any]
"""Gives a value that an oracle can say, or None for "any will do"."""

INTEGER_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "int64": 64}


def declared_in(module: ModuleType) -> dict[str, type[Message]]:
    """The messages that a module declares itself, by name."""
    return {
        name: member
        for name, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Message) and member.__module__.startswith(module.__name__)
    }


def coordinator_records() -> dict[str, type[Message]]:
    """Every record type; the package itself loads none before it is needed."""
    found: dict[str, type[Message]] = {}
    for module in pkgutil.iter_modules(records.__path__, f"{records.__name__}."):
        found |= declared_in(importlib.import_module(module.name))
    return found


def versions_of(message: type[Message]) -> Iterator[int]:
    return iter(range(message.__versions__.lowest, message.__versions__.highest + 1))


def sample(struct: type[M], version: int, rng: random.Random, narrow: Narrow | None = None) -> M:
    """An instance with random values in the fields that `version` carries; defaults elsewhere."""
    return _sample(struct, version, rng, narrow, struct.__name__)


def _sample(
    struct: type[M], version: int, rng: random.Random, narrow: Narrow | None, path: str
) -> M:
    values = {
        field.name: _value(field, version, rng, narrow, f"{path}.{field.name}")
        for field in struct.__fields__
        if field.carried_in(version) and (rng.random() > 0.1 or _must_be_set(field, version))
    }
    return struct(**values)


def _must_be_set(field: Field, version: int) -> bool:
    return field.default is None and field.struct is None and version not in field.nullable


def _value(field: Field, version: int, rng: random.Random, narrow: Narrow | None, path: str) -> Any:
    if version in field.nullable and rng.random() < 0.2:
        return None
    if field.element is not None:
        count = rng.choice([0, 1, 1, 2, 3] if field.element.struct else [0, 1, 3, 70, 130])
        return [_value(field.element, version, rng, narrow, path) for _ in range(count)]
    if field.struct is not None:
        if field.tag is not None and rng.random() < 0.3:
            return None
        return _tidy(_sample(field.struct, version, rng, narrow, path), field)
    if narrow is not None and (value := narrow(path, field, rng)) is not None:
        return value
    return primitive(field.kind, rng)


def _tidy(value: Struct, field: Field) -> Struct | None:
    """A tagged struct that holds only defaults is not sent, and comes back as None."""
    if field.tag is not None and value == type(value)() and not field.nullable.highest >= 0:
        return None
    return value


def primitive(kind: str, rng: random.Random) -> Any:
    if kind in INTEGER_BITS:
        bits = INTEGER_BITS[kind]
        low, high = (
            (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        return rng.choice([low, high, 0, 1, max(low, -1), rng.randint(low, high)])
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "float64":
        return rng.choice([0.0, -1.5, 1e300, rng.random()])
    if kind == "uuid":
        return rng.choice([ZERO_UUID, UUID(int=rng.getrandbits(128)), UUID(int=2**128 - 1)])
    if kind == "string":
        return rng.choice(["", "a", "naïve-客户", "t" * 126, "t" * 127, "t" * 128, "x" * 300])
    if kind == "bytes":
        return rng.choice([b"", b"\0", rng.randbytes(20), rng.randbytes(126), rng.randbytes(17000)])
    assert kind == "records", kind
    return memoryview(rng.choice([b"", rng.randbytes(61), rng.randbytes(127), rng.randbytes(5000)]))
