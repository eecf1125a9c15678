"""`@frozen` is `@dataclass(frozen=True, slots=True)` to everyone who looks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import (
    FrozenInstanceError,
    asdict,
    dataclass,
    field,
    fields,
    is_dataclass,
    replace,
)
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from logboat.seam import frozen

T = TypeVar("T")


@frozen
class Place:
    """Where."""

    topic: str
    partition: int = 0
    configs: Mapping[str, str] = field(default_factory=dict, compare=False)
    secret: str = field(default="", repr=False)
    KIND: ClassVar[str] = "place"

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Standard:
    topic: str
    partition: int = 0


@frozen
class Box(Generic[T]):
    content: T


@frozen
class Nothing:
    pass


@frozen
class Named(Place):
    owner: str = "nobody"


@frozen
class Checked:
    low: int
    high: int
    width: int = field(init=False)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")
        object.__setattr__(self, "width", self.high - self.low)


@frozen
class LikeAnything:
    value: int

    def __eq__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "anything"


def test_arguments_come_by_position_and_by_name_and_have_defaults() -> None:
    assert Place("a", 1) == Place(partition=1, topic="a")
    assert Place("a").partition == 0
    with pytest.raises(TypeError, match=r"Place\.__init__\(\) missing 1 required positional"):
        Place()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'offset'"):
        Place("a", offset=1)  # type: ignore[call-arg]


def test_every_instance_has_a_default_of_its_own() -> None:
    assert Place("a").configs is not Place("a").configs
    assert Place("a", configs={"x": "y"}).configs == {"x": "y"}


def test_values_compare_by_the_compared_fields_and_by_class() -> None:
    assert Place("a", configs={"x": "y"}) == Place("a")
    assert Place("a", secret="s") != Place("a")
    assert Place("a") != Named("a")
    assert Place("a") != Standard("a")  # type: ignore[comparison-overlap]
    assert Nothing() == Nothing()
    assert Box(1) == Box(1) != Box(2)


def test_equal_values_have_equal_hashes() -> None:
    assert hash(Place("a", configs={"x": "y"})) == hash(Place("a"))
    assert {Place("a"): 1}[Place("a")] == 1
    assert hash(Nothing()) == hash(Nothing())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Box([1]))


def test_values_show_what_may_be_shown() -> None:
    assert repr(Place("a", secret="s")) == "Place(topic='a', partition=0, configs={})"
    assert repr(Nothing()) == "Nothing()"


def test_nothing_can_be_assigned_deleted_or_added() -> None:
    place: Any = Place("a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'topic'"):
        place.topic = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'topic'"):
        del place.topic
    with pytest.raises(FrozenInstanceError):
        place.other = 1
    assert not hasattr(place, "__dict__")
    assert place == Place("a")


def test_the_tools_for_dataclasses_work() -> None:
    assert [item.name for item in fields(Place)] == ["topic", "partition", "configs", "secret"]
    assert replace(Place("a"), partition=3) == Place("a", 3)
    assert asdict(Place("a")) == {"topic": "a", "partition": 0, "configs": {}, "secret": ""}
    assert is_dataclass(Place)


def test_values_match_by_position() -> None:
    match Place("a", 2):
        case Place(topic, 2):
            assert topic == "a"
        case _:
            pytest.fail("no match")
    assert Place.__match_args__ == ("topic", "partition", "configs", "secret")


def test_values_can_be_copied() -> None:
    assert copy.copy(Place("a", 2)) == Place("a", 2)
    deep = copy.deepcopy(Box([1]))
    assert deep == Box([1])


def test_a_value_can_be_checked_when_it_is_made() -> None:
    assert Checked(1, 4).width == 3
    with pytest.raises(ValueError, match="low is above high"):
        Checked(2, 1)


def test_a_class_inherits_fields_and_keeps_its_own_methods() -> None:
    assert Named("a", owner="me").name == "a-0"
    assert [item.name for item in fields(Named)][-1] == "owner"
    assert LikeAnything(1) == 5
    assert repr(LikeAnything(1)) == "anything"
    with pytest.raises(TypeError, match="unhashable"):
        hash(LikeAnything(1))


def test_a_missing_docstring_is_not_made_up() -> None:
    assert Place.__doc__ == "Where."
    assert Nothing.__doc__ == "Nothing"


def test_the_slots_are_those_of_a_standard_dataclass() -> None:
    @frozen
    class Same:
        topic: str
        partition: int = 0

    assert Same.__slots__ == Standard.__slots__  # type: ignore[attr-defined]
    assert hash(Same("a")) == hash(Standard("a"))
    assert repr(Same("a")).endswith("Same(topic='a', partition=0)")
