"""What the members of a group want, counted: most want the same, and every heartbeat asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from .member import ConsumerMember, Subscribed

Wish = TypeVar("Wish")


class Census:
    def __init__(self) -> None:
        self._subscriptions: dict[Subscribed, int] = {}
        self._assignors: dict[str, int] = {}

    def enter(self, member: ConsumerMember) -> None:
        _add(self._subscriptions, member.subscription)
        if member.assignor is not None:
            _add(self._assignors, member.assignor)

    def leave(self, member: ConsumerMember) -> None:
        _take(self._subscriptions, member.subscription)
        if member.assignor is not None:
            _take(self._assignors, member.assignor)

    @property
    def subscriptions(self) -> Iterator[Subscribed]:
        """Each once."""
        return iter(self._subscriptions)

    def assignor(self, default: str) -> str:
        """What most members would like; the default when nobody says."""
        votes = self._assignors
        return max(votes, key=lambda name: votes[name], default=default)

    @property
    def regexes(self) -> frozenset[str]:
        return frozenset(regex for _, regex in self._subscriptions if regex)


def _add(counts: dict[Wish, int], wish: Wish) -> None:
    counts[wish] = counts.get(wish, 0) + 1


def _take(counts: dict[Wish, int], wish: Wish) -> None:
    left = counts[wish] - 1
    if left:
        counts[wish] = left
    else:
        del counts[wish]
