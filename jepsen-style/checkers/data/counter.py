"""A counter with concurrent additions: each read lies between bounds that must hold.

At any instant the value is at least the additions that have completed (plus every negative one
that may have begun) and at most those that have begun. A read is right when it lies between the
lower bound at its invocation and the upper bound at its completion, widened by what the other sign
may have done meanwhile.
"""

from __future__ import annotations

from ...history import NEVER, History, Outcome
from ..verdict import Anomaly, Verdict, judged, valid


def check_counter(history: History, *, initial: int = 0) -> Verdict:
    """Functions `add` and `read`. A failed addition never counted."""
    events: list[tuple[int, bool, int]] = []
    reads = 0
    for index in range(len(history)):
        if history.function[index] == "add" and history.outcome[index] == Outcome.FAIL:
            continue
        events.append((history.invoked[index], True, index))
        if history.completed[index] != NEVER:
            events.append((history.completed[index], False, index))
    events.sort()
    low = high = initial
    # For each open read: the least lower and the greatest upper bound while it was open.
    open_reads: dict[int, tuple[int, int]] = {}
    found: list[Anomaly] = []
    for _, begins, index in events:
        if history.function[index] == "add":
            amount = history.argument[index]
            if begins == (amount > 0):
                high += amount
            else:
                low += amount
            for read, (least, greatest) in open_reads.items():
                open_reads[read] = (min(least, low), max(greatest, high))
        elif begins:
            open_reads[index] = (low, high)
        else:
            least, greatest = open_reads.pop(index)
            value = history.result[index]
            if history.outcome[index] == Outcome.OK and value is not None:
                reads += 1
                if not least <= value <= greatest:
                    found.append(
                        Anomaly(
                            "out-of-bounds",
                            f"read {value}, possible were {least} to {greatest}",
                            (index,),
                        )
                    )
    if reads:
        return judged(found)
    # Bounds on nothing hold; say so, that nobody takes it for evidence.
    return valid(reported=(Anomaly("too-weak", "no read tells the counter"),))
