"""What a setting is: its name, type, default and legal values, and how to say what is wrong.

Sentences follow Kafka's, because people search for them. Values travel and are kept as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType

from ..seam import frozen

MAX_LONG = 2**63 - 1


class ConfigType(IntEnum):
    """As DescribeConfigs numbers them (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class ConfigSource(IntEnum):
    """Where an effective value comes from, as DescribeConfigs numbers it (KIP-226)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class UpdateMode(IntEnum):
    """How a broker setting may change while the broker runs (KIP-226)."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2


class InvalidConfig(Exception):
    """The message is the sentence for the client (INVALID_CONFIG)."""


Check = Callable[[int | float], str | None]

_BITS = MappingProxyType({ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64})
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


@frozen
class Definition:
    """One setting."""

    name: str
    type: ConfigType
    default: str | None
    """As text; None: unset."""
    doc: str
    check: Check | None = None
    values: tuple[str, ...] = ()
    """Legal texts, of a string or of a list's elements; empty: any."""
    any_case: bool = False
    """Whether `values` are meant in any mixture of upper and lower case."""
    may_be_empty: bool = True
    """Whether a list without elements means something."""
    synonyms: tuple[tuple[str, int], ...] = ()
    """Of a topic setting: broker settings that give its default, first set wins, each with the
    factor that turns the broker's unit into the topic's."""
    update: UpdateMode = UpdateMode.READ_ONLY
    """Of a broker setting."""

    def validate(self, text: str) -> None:
        """Raises InvalidConfig."""
        if self.type == ConfigType.BOOLEAN:
            if text.strip().lower() not in ("true", "false"):
                raise self._invalid(text, "Expected value to be either true or false")
        elif self.type == ConfigType.STRING:
            known = text.upper() if self.any_case else text
            if self.values and known not in self.values:
                raise self._invalid(text, f"String must be one of: {', '.join(self.values)}")
        elif self.type == ConfigType.LIST:
            self._validate_list(text)
        else:
            self._validate_number(text)

    def number(self, text: str) -> int:
        """The whole number that a valid text stands for."""
        return int(text.strip())

    def boolean(self, text: str) -> bool:
        return text.strip().lower() == "true"

    def _validate_list(self, text: str) -> None:
        items = split_list(text)
        if not items and not self.may_be_empty:
            raise self._invalid(text, "must not be empty")
        for position, item in enumerate(items):
            if self.values and item not in self.values:
                raise self._invalid(item, f"String must be one of: {', '.join(self.values)}")
            if item in items[:position]:
                raise self._invalid(text, f"Duplicate value {item}")

    def _validate_number(self, text: str) -> None:
        stripped = text.strip()
        value: int | float
        if self.type == ConfigType.DOUBLE:
            if not _NUMBER.fullmatch(stripped):
                raise self._invalid(text, "Not a number of type DOUBLE")
            value = float(stripped)
        else:
            limit = 2 ** (_BITS[self.type] - 1)
            # The length first: turning a million digits into a number takes seconds.
            if len(stripped) > 40 or not _WHOLE_NUMBER.fullmatch(stripped):
                raise self._invalid(text, f"Not a number of type {self.type.name}")
            value = int(stripped)
            if not -limit <= value < limit:
                raise self._invalid(text, f"Not a number of type {self.type.name}")
        why = self.check(value) if self.check else None
        if why:
            raise self._invalid(stripped, why)

    def _invalid(self, text: str, why: str) -> InvalidConfig:
        return InvalidConfig(f"Invalid value {text} for configuration {self.name}: {why}")


def split_list(text: str) -> list[str]:
    """The elements of a list setting."""
    return [item.strip() for item in text.split(",")] if text.strip() else []


def at_least(least: int) -> Check:
    return lambda value: None if value >= least else f"Value must be at least {least}"


def between(least: int, most: int, *, or_: int | None = None) -> Check:
    def check(value: int | float) -> str | None:
        if value == or_ or least <= value <= most:
            return None
        if value < least:
            return f"Value must be at least {least}"
        return f"Value must be no more than {most}"

    return check


def by_name(definitions: Iterable[Definition]) -> Mapping[str, Definition]:
    return MappingProxyType({definition.name: definition for definition in definitions})
