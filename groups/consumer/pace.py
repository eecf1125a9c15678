"""How soon a member is asked to beat again.

The coordinator speaks only when it is asked, so whatever a member must learn waits for its next
heartbeat. It is asked to come sooner while there is, or may soon be, something to tell.
"""

from __future__ import annotations

SOON_MS = 250
"""Not sooner: librdkafka waits for an answer no longer than until its next heartbeat, then cuts the
connection, commits under way and all."""

SOON_MS_PER_MEMBER = 2
"""Together the members of a group beat at most 500 times a second."""

YOUNG_MS = 1_000
"""An epoch is young so long: members seldom come alone, and the next one needs partitions back."""

AFTER_DEADLINE_MS = 20
"""The coordinator's timer has then fenced the silent member."""


def next_interval_ms(
    *, usual_ms: int, members: int, on_its_way: bool, epoch_age_ms: int, fenced_in_ms: int
) -> int:
    """
    `on_its_way`: the member has yet to reach its target.
    `fenced_in_ms`: until the first member is fenced unless it beats; most of them do.
    """
    if on_its_way or epoch_age_ms < YOUNG_MS:
        return min(usual_ms, max(SOON_MS, members * SOON_MS_PER_MEMBER))
    return min(usual_ms, max(SOON_MS, fenced_in_ms + AFTER_DEADLINE_MS))


def assignment_wait_ms(*, interval_ms: int, members: int) -> int:
    """
    Least time between two assignments of a group, within which joins share one (KIP-1263).

    `interval_ms`: the group's setting, a ceiling here. An assignment costs as much as the group is
    large, and its members come no faster than this to hear of it; two members need not wait.
    """
    return min(interval_ms, members * SOON_MS_PER_MEMBER)
