"""Which assignor a generation uses: each member votes for its favourite among those all know."""

from __future__ import annotations

from .member import Member

Liked = tuple[str, ...]
"""A member's protocols, its favourite first."""


class Offers:
    """How many members offer what: in a large group nobody is asked one by one."""

    def __init__(self) -> None:
        self._members = 0
        self._by_name: dict[str, int] = {}
        self._by_liking: dict[Liked, int] = {}
        """Most members of a group offer the same in the same order."""

    def add(self, member: Member) -> None:
        self._count(member, 1)

    def remove(self, member: Member) -> None:
        self._count(member, -1)

    def _count(self, member: Member, step: int) -> None:
        liked = _liked(member)
        self._members += step
        for name in liked:
            self._by_name[name] = self._by_name.get(name, 0) + step
        self._by_liking[liked] = self._by_liking.get(liked, 0) + step
        if not self._by_liking[liked]:
            del self._by_liking[liked]

    def common_to_all_but(self, left_out: Member | None, name: str) -> bool:
        """Do all members support it? One of them may be left out."""
        if left_out is None:
            return self._by_name.get(name, 0) == self._members
        theirs = self._by_name.get(name, 0) - left_out.supports(name)
        return theirs == self._members - 1

    def chosen(self, first: Member) -> str:
        """The common protocol with the most votes; equal votes go to the one that the `first`
        member names first. Who joined had one in common with all the others."""
        common = [name for name in _liked(first) if self.common_to_all_but(None, name)]
        votes = dict.fromkeys(common, 0)
        for liked, count in self._by_liking.items():
            favourite = next(name for name in liked if name in votes)
            votes[favourite] += count
        return max(votes, key=lambda name: votes[name])


def _liked(member: Member) -> Liked:
    return tuple(dict.fromkeys(name for name, _ in member.protocols))
