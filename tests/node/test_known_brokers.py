"""Metadata names a broker for a few seconds after it was fenced."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from logboat.metadata.image import BrokerImage, ClusterImage, Endpoint, ImageChange
from logboat.metadata.snapshot import compare, empty_image
from logboat.node import known_brokers
from logboat.node.known_brokers import KnownBrokers


def image(**fenced: bool) -> ClusterImage:
    brokers = {
        number: BrokerImage(
            node_id=number,
            broker_epoch=1,
            incarnation_id=UUID(int=1),
            directory_id=UUID(int=number),
            kafka=Endpoint("h", 1),
            internode=Endpoint("h", 2),
            http=None,
            rack=None,
            fenced=fenced.get(f"n{number}", False),
            in_controlled_shutdown=False,
        )
        for number in (1, 2)
    }
    return replace(empty_image("c"), brokers=brokers)


def change(before: ClusterImage, after: ClusterImage) -> ImageChange:
    return compare(before, after)


def names(known: KnownBrokers, at: ClusterImage) -> list[int]:
    return [broker.node_id for broker in known.named(at)]


async def test_a_broker_fenced_just_now_is_still_named_and_later_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = KnownBrokers()
    known.on_image(change(image(), image(n2=True)))
    assert names(known, image(n2=True)) == [1, 2]
    monkeypatch.setattr(known_brokers, "NAMED_AFTER_FENCING_S", 0.0)
    assert names(known, image(n2=True)) == [1]


async def test_a_broker_that_never_lived_in_our_sight_is_not_named() -> None:
    known = KnownBrokers()
    known.on_image(change(empty_image("c"), image(n2=True)))
    assert names(known, image(n2=True)) == [1]


async def test_a_broker_that_came_back_is_named_by_its_own_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = KnownBrokers()
    known.on_image(change(image(), image(n2=True)))
    known.on_image(change(image(n2=True), image()))
    monkeypatch.setattr(known_brokers, "NAMED_AFTER_FENCING_S", 0.0)
    assert names(known, image()) == [1, 2]
