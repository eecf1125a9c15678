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
