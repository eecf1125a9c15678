"""Which assignor a generation uses: each member votes for its favourite among those all know."""

from __future__ import annotations

from collections.abc import Iterable

from .member import Member


def common_protocols(members: Iterable[Member]) -> tuple[str, ...]:
    """Names that every member supports, in the order in which the first member likes them."""
    listed = list(members)
    if not listed:
        return ()
    return tuple(
        name for name, _ in listed[0].protocols if all(m.supports(name) for m in listed[1:])
    )


def choose_protocol(members: Iterable[Member]) -> str:
    """The common protocol with the most votes; equal votes go to the one named first."""
    listed = list(members)
    votes = dict.fromkeys(common_protocols(listed), 0)
    for member in listed:
        favourite = next(name for name, _ in member.protocols if name in votes)
        votes[favourite] += 1
    return max(votes, key=lambda name: votes[name])


class Offers:
    """How many members offer each protocol: who joins a large group is not compared with each."""

    def __init__(self) -> None:
        self._members = 0
        self._by_name: dict[str, int] = {}

    def add(self, member: Member) -> None:
        self._count(member, 1)

    def remove(self, member: Member) -> None:
        self._count(member, -1)

    def _count(self, member: Member, step: int) -> None:
        self._members += step
        for name in _names(member):
            self._by_name[name] = self._by_name.get(name, 0) + step

    def common_to_all_but(self, left_out: Member | None, name: str) -> bool:
        """Do all members support it? One of them may be left out."""
        if left_out is None:
            return self._by_name.get(name, 0) == self._members
        theirs = self._by_name.get(name, 0) - left_out.supports(name)
        return theirs == self._members - 1


def _names(member: Member) -> dict[str, None]:
    return dict.fromkeys(name for name, _ in member.protocols)
