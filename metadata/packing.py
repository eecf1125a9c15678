"""Typed values to msgpack and back, in exactly one way.

Commands, their results and snapshots share this: the layout is read off the dataclass declaration
once, at import. Equal values give equal bytes on every node, under every hash seed and Python
release (RULES A1, A3): maps travel as pairs sorted by key, dataclasses as arrays in the order of
their fields, and neither floats nor sets can be declared.

A dataclass grows by appending a field marked `field(metadata=since(level))`: packing for an older
level of `logboat.version` leaves it out, and unpacking gives it its default (RULES A2).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

import msgpack

from ..seam import frozen
from .steps import Steps, slices

Value = TypeVar("Value")


class Malformed(Exception):
    """The bytes are not what this declaration packs."""


def since(level: int) -> Mapping[str, int]:
    """Metadata of a field that exists from this level of `logboat.version` on."""
    return MappingProxyType({"since": level})


@frozen
class Packer(Generic[Value]):
    """`unpack(pack(value)) == value`; `pack` gives what msgpack can write."""

    pack: Callable[[Value], Any]
    unpack: Callable[[Any], Value]
    unpack_in_steps: Callable[[Any], Steps[Value]] | None = None
    """The same for what may hold thousands of values; None where it cannot."""

    def encode(self, value: Value) -> bytes:
        return cast(bytes, msgpack.packb(self.pack(value)))

    def decode(self, data: bytes | memoryview) -> Value:
        """Raises Malformed."""
        try:
            return self.unpack(_read(data))
        except Malformed:
            raise
        except Exception as error:
            raise Malformed(f"{type(error).__name__}: {error}") from error

    def decode_in_steps(self, data: bytes | memoryview) -> Steps[Value]:
        """The same, leaving the loop to others in between (RULES F1)."""
        if self.unpack_in_steps is None:
            return self.decode(data)
        try:
            return (yield from self.unpack_in_steps(_read(data)))
        except Malformed:
            raise
        except Exception as error:
            raise Malformed(f"{type(error).__name__}: {error}") from error


def packer_of(hint: Any, level: int, *, without: tuple[str, ...] = ()) -> Packer[Any]:
    """The packer of a declared type, as `level` of `logboat.version` writes it.

    `without` names fields of the outermost dataclass that are not stored because they follow from
    the others.
    """
    if is_dataclass(hint):
        return _dataclass(cast(type, hint), level, without)
    if hint in (int, str, bytes, bool):
        return _plain(hint)
    if hint is UUID:
        return Packer(lambda value: value.bytes, lambda packed: UUID(bytes=_a(bytes, packed)))
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return Packer(int, lambda packed: hint(_a(int, packed)))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if (
        origin in (types.UnionType, typing.Union)
        and len(arguments) == 2
        and arguments[1] is type(None)
    ):
        return _optional(packer_of(arguments[0], level))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _sequence(packer_of(arguments[0], level))
    if origin is tuple:
        return _row([packer_of(argument, level) for argument in arguments])
    if origin is Mapping:
        return _mapping(packer_of(arguments[0], level), packer_of(arguments[1], level))
    raise TypeError(f"{hint!r} cannot be packed in one way only")


def _read(data: bytes | memoryview) -> Any:
    return msgpack.unpackb(data, use_list=True, strict_map_key=False)


def _a(expected: type, packed: Any) -> Any:
    if type(packed) is not expected:
        raise Malformed(f"{type(packed).__name__} where {expected.__name__} belongs")
    return packed


def _same(value: Any) -> Any:
    return value


def _plain(expected: type) -> Packer[Any]:
    return Packer(_same, lambda packed: _a(expected, packed))


def _optional(inner: Packer[Any]) -> Packer[Any]:
    return Packer(
        lambda value: None if value is None else inner.pack(value),
        lambda packed: None if packed is None else inner.unpack(packed),
    )


def _sequence(inner: Packer[Any]) -> Packer[Any]:
    pack, unpack, unpack_in_steps = inner.pack, inner.unpack, inner.unpack_in_steps
    plain = pack is _same

    def in_steps(packed: Any) -> Steps[Any]:
        items: list[Any] = []
        for piece in slices(_a(list, packed)):
            if unpack_in_steps is None:
                items += [unpack(item) for item in piece]
            else:
                for item in piece:
                    items.append((yield from unpack_in_steps(item)))
            yield len(piece)
        return tuple(items)

    return Packer(
        list if plain else lambda value: [pack(item) for item in value],
        lambda packed: tuple([unpack(item) for item in _a(list, packed)]),
        None if plain else in_steps,
    )


def _row(inner: list[Packer[Any]]) -> Packer[Any]:
    return Packer(
        lambda value: [one.pack(item) for one, item in zip(inner, value, strict=True)],
        lambda packed: tuple(
            one.unpack(item) for one, item in zip(inner, _a(list, packed), strict=True)
        ),
    )


def _mapping(key: Packer[Any], value: Packer[Any]) -> Packer[Any]:
    return Packer(
        lambda mapping: [[key.pack(k), value.pack(mapping[k])] for k in sorted(mapping)],
        lambda packed: MappingProxyType(
            {key.unpack(k): value.unpack(v) for k, v in _a(list, packed)}
        ),
    )


def _dataclass(cls: type, level: int, without: tuple[str, ...]) -> Packer[Any]:
    hints = typing.get_type_hints(cls)
    stored = [
        (field.name, packer_of(hints[field.name], level))
        for field in fields(cls)
        if field.name not in without and field.metadata.get("since", 1) <= level
    ]

    names = [name for name, _ in stored]
    packs = [(name, None if one.pack is _same else one.pack) for name, one in stored]
    unpacks = [one.unpack for _, one in stored]
    in_steps = [one.unpack_in_steps for _, one in stored]

    def pack(value: Any) -> list[Any]:
        return [
            getattr(value, name) if one is None else one(getattr(value, name))
            for name, one in packs
        ]

    def check(packed: Any) -> None:
        if len(_a(list, packed)) != len(unpacks):
            raise Malformed(f"{cls.__name__} of {len(packed)} fields, not {len(unpacks)}")

    def unpack(packed: Any) -> Any:
        check(packed)
        values = [one(item) for one, item in zip(unpacks, packed, strict=True)]
        return cls(**dict(zip(names, values, strict=True)))

    def unpack_in_steps(packed: Any) -> Steps[Any]:
        check(packed)
        values = []
        for one, steps, item in zip(unpacks, in_steps, packed, strict=True):
            values.append(one(item) if steps is None else (yield from steps(item)))
        return cls(**dict(zip(names, values, strict=True)))

    return Packer(pack, unpack, unpack_in_steps if any(in_steps) else None)
