"""Histories of transactions over lists and registers, honest and not.

Transactions run one after another in truth and overlap on paper. Dishonest ones read from an old
snapshot, read half of another transaction, read what was aborted or never written, or forget their
own writes. Readers of registers are also told values that nobody wrote, and writers repeat values.
"""

from __future__ import annotations

from random import Random
from typing import Any

from ..history import History, Outcome

FAULTS = ("none", "stale", "half", "aborted", "forgetful", "reordered", "doubled", "invented")


def transaction_history(kind: str, random: Random, fault: str, *, size: int = 8) -> History:
    """`kind` is `list-append` or `rw-register`."""
    history = History()
    versions: list[dict[str, Any]] = [{}]
    overwritten: dict[str, int] = {}
    fresh = 0
    clients = 3
    open_transactions: dict[int, list[list[Any]]] = {}
    for _ in range(size):
        client = random.randrange(clients)
        if client in open_transactions:
            history.complete(client, Outcome.OK, open_transactions.pop(client), 0)
        state = dict(versions[-1])
        strikes = fault != "none" and random.random() < 0.5
        snapshot = versions[random.randrange(len(versions))] if strikes else versions[-1]
        if fault not in ("stale", "half"):
            snapshot = versions[-1]
        view = dict(snapshot)
        asked: list[list[Any]] = []
        answered: list[list[Any]] = []
        aborts = random.random() < 0.15
        for _ in range(random.randrange(1, 4)):
            key = random.choice("xy")
            if random.random() < 0.5:
                value = view.get(key)
                shown: Any = list(value or ()) if kind == "list-append" else value
                if kind == "list-append" and strikes and fault == "reordered":
                    shown = shown[::-1]
                if kind == "list-append" and strikes and fault == "doubled" and shown:
                    shown = [*shown, shown[0]]
                if kind == "list-append" and strikes and fault == "invented":
                    shown = [*shown, -1]
                if kind == "list-append" and strikes and fault == "half" and shown:
                    shown = shown[:-1]
                if kind == "rw-register" and strikes and fault == "invented":
                    shown = -1
                if kind == "rw-register" and strikes and fault == "half":
                    shown = overwritten.get(key, shown)
                asked.append(["r", key, None])
                answered.append(["r", key, shown])
                continue
            if not (kind == "rw-register" and strikes and fault == "doubled" and fresh):
                fresh += 1
            mine = [value for verb, name, value in asked if (verb, name) == ("w", key)]
            if mine:
                overwritten[key] = mine[-1]
            verb = "append" if kind == "list-append" else "w"
            asked.append([verb, key, fresh])
            answered.append([verb, key, fresh])
            if not (strikes and fault == "forgetful"):
                view[key] = (*(view.get(key) or ()), fresh) if kind == "list-append" else fresh
            state[key] = (*(state.get(key) or ()), fresh) if kind == "list-append" else fresh
        history.invoke(client, "txn", asked, 0)
        if aborts:
            history.complete(client, Outcome.FAIL, None, 0)
            if strikes and fault == "aborted":
                versions.append(state)
            continue
        versions.append(state)
        open_transactions[client] = answered
        if random.random() < 0.6:
            history.complete(client, Outcome.OK, open_transactions.pop(client), 0)
    for client, answered in open_transactions.items():
        history.complete(client, Outcome.OK, answered, 0)
    return history


def bank_history(random: Random, fault: str) -> History:
    """Reads of three accounts, the last of which shows money from nowhere, a `debt`, an account
    without balance (`nil`) or one account too many (`stranger`).
    """
    history = History()
    reads: list[dict[str, int | None]]
    reads = [{"a": 5, "b": 3, "c": 2}, {"a": 4, "b": 4, "c": 2}, {"a": 4, "b": 0, "c": 6}]
    shown = dict(random.choice(reads))
    account = random.choice("abc")
    if fault == "total":
        shown[account] = (shown[account] or 0) + random.choice((-1, 1))
    elif fault == "debt":
        shown = {"a": -1, "b": 1, "c": 10}
    elif fault == "nil":
        shown[account] = None
    elif fault == "stranger":
        shown["d"] = 0
    for number, balances in enumerate((reads[0], shown)):
        history.invoke(number, "read", None, 0)
        history.complete(number, Outcome.OK, balances, 0)
    return history


BANK_FAULTS = ("none", "total", "debt", "nil", "stranger")


def unread_counter(random: Random) -> History:
    """Additions, and no read that could be wrong."""
    history = History()
    for number in range(random.randrange(1, 4)):
        history.invoke(number, "add", random.randrange(-3, 4), 0)
        history.complete(number, Outcome.OK, None, 0)
    return history


def long_fork_history(random: Random, *, forked: bool, shown: int = 1) -> History:
    """Two writes and two readers; `forked`: the readers disagree on which came first. `shown` is
    what one of them reads of the first key: 1 was written.
    """
    history = History()
    key, other = random.sample("xyz", 2)
    for client, name in ((0, key), (1, other)):
        history.invoke(client, "txn", [["w", name, 1]], 0)
        history.complete(client, Outcome.OK, [["w", name, 1]], 0)
    views: list[tuple[int | None, int | None]]
    views = [(1, None), (None, 1)] if forked else [(1, None), random.choice([(1, None), (1, 1)])]
    if shown != 1:
        views[1] = (shown, 1)
    random.shuffle(views)
    for client, (first, second) in enumerate(views, 2):
        history.invoke(client, "txn", [["r", key, None], ["r", other, None]], 0)
        answer = [["r", key, first], ["r", other, second]]
        history.complete(client, Outcome.OK, answer, 0)
    return history


def grown_set_history(random: Random, fault: str) -> History:
    """Adds, then reads; an element is `lost`, `stale` for a while, `doubled`, `unexpected`, or
    added so `late` that nobody reads any more.
    """
    history = History()
    members = list(range(random.randrange(2, 5)))
    for element in members:
        history.invoke(0, "add", element, 0)
        uncertain = random.random() < 0.2
        history.complete(0, Outcome.INFO if uncertain else Outcome.OK, element, 0)
        if uncertain:
            members = [m for m in members if m != element or random.random() < 0.5]
    whole = list(members)
    reads = [list(whole) for _ in range(3)]
    if fault == "lost" and whole:
        victim = random.choice(whole)
        reads[1].remove(victim)
        reads[2].remove(victim)
    elif fault == "stale" and whole:
        reads[1].remove(random.choice(whole))
    elif fault == "doubled" and whole:
        reads[0].append(whole[0])
    elif fault == "unexpected":
        reads[2].append(99)
    for number, read in enumerate(reads):
        history.invoke(number + 1, "read", None, 0)
        history.complete(number + 1, Outcome.OK, read, 0)
    if fault == "late":
        history.invoke(0, "add", 50, 0)
        history.complete(0, Outcome.OK, 50, 0)
    return history


SET_FAULTS = ("none", "lost", "stale", "doubled", "unexpected", "late")
