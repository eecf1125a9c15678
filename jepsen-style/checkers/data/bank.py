"""Transfers between accounts: every read of all accounts sums up to the same total."""

from __future__ import annotations

from ...history import History, Outcome
from ..verdict import Anomaly, Verdict, judged, unknown


def check_bank(
    history: History, *, total: int | None = None, negative_balances: bool = False
) -> Verdict:
    """`total` None: the sum of the first read is taken for it. A balance below zero fails unless
    `negative_balances`; so does an account that is absent or has no balance.
    """
    found: list[Anomaly] = []
    accounts: frozenset[object] | None = None
    for operation in history:
        if operation.function != "read" or operation.outcome is not Outcome.OK:
            continue
        balances = operation.result
        missing = [account for account, balance in balances.items() if balance is None]
        if missing:
            found.append(Anomaly("nil-balance", f"{missing!r} have none", (operation.index,)))
            continue
        if accounts is None:
            accounts = frozenset(balances)
        elif accounts != frozenset(balances):
            differ = sorted(map(repr, accounts.symmetric_difference(balances)))
            found.append(Anomaly("unexpected-key", f"{differ}", (operation.index,)))
        summed = sum(balances.values())
        if total is None:
            total = summed
        elif summed != total:
            found.append(Anomaly("wrong-total", f"{summed} instead of {total}", (operation.index,)))
        negative = {account: balance for account, balance in balances.items() if balance < 0}
        if negative and not negative_balances:
            found.append(Anomaly("negative-value", f"{negative!r}", (operation.index,)))
    if accounts is None and not found:
        return unknown("no read tells a balance")
    return judged(found)
