"""Every fault of the network by its name: which links it touches, and that it heals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from logboat.jepsen_style.processes.links import CLIENTS, Link, Links, party
from logboat.jepsen_style.processes.means import NEEDS, PROXIES
from logboat.jepsen_style.processes.network_faults import NetworkFaults
from logboat.jepsen_style.schedule import Fault, Target
from logboat.jepsen_style.schedule.kinds import Option

NODES = [1, 2, 3, 4]
PRODUCE = 0
Ways = set[tuple[str, str]]


def both(*pairs: tuple[int, int]) -> Ways:
    return {way for a, b in pairs for way in ((party(a), party(b)), (party(b), party(a)))}


def with_clients(node_id: int) -> Ways:
    return {(CLIENTS, party(node_id)), (party(node_id), CLIENTS)}


INTO_1: Ways = {(other, party(1)) for other in (party(2), party(3), party(4), CLIENTS)}

CUT: list[tuple[str, Mapping[str, Option], Ways]] = [
    ("isolate", {}, both((1, 2), (1, 3), (1, 4))),
    ("isolate", {"clients": True}, both((1, 2), (1, 3), (1, 4)) | with_clients(1)),
    ("isolate", {"direction": "in", "clients": True}, INTO_1),
    ("isolate", {"direction": "out", "clients": True}, {(b, a) for a, b in INTO_1}),
    ("halves", {}, both((1, 3), (1, 4), (2, 3), (2, 4))),
    (
        "halves",
        {"clients": True},
        both((1, 3), (1, 4), (2, 3), (2, 4)) | with_clients(1) | with_clients(2),
    ),
    ("ring", {}, {(party(a), party(b)) for a, b in ((1, 2), (2, 3), (3, 4), (4, 1))}),
    ("bridge", {}, both((2, 3), (2, 4))),
    ("clients-cut", {}, with_clients(1)),
]


def struck(kind: str, options: Mapping[str, Option]) -> tuple[Links, Links]:
    """The links while the fault lasts, and after its heal."""
    during, after = Links(), Links()
    resets: list[int] = []

    async def strike(links: Links, *, heal: bool) -> None:
        for one in (*map(party, NODES), CLIENTS):
            for other in (*map(party, NODES), CLIENTS):
                links.link(one, other)
        faults = NetworkFaults(links, NODES, resets.append)
        fault = Fault(0, kind, Target("node", number=1), 100, options)
        undo = await faults.kinds[kind](fault, [1])
        if heal:
            await undo()

    asyncio.run(strike(during, heal=False))
    asyncio.run(strike(after, heal=True))
    return during, after


def where(links: Links, touched: object) -> Ways:
    assert callable(touched)
    return {way for way, link in links.known.items() if touched(link)}


@pytest.mark.parametrize(("kind", "options", "expected"), CUT)
def test_each_shape_cuts_its_links_and_no_other(
    kind: str, options: Mapping[str, Option], expected: Ways
) -> None:
    during, after = struck(kind, options)
    assert where(during, lambda link: not link.is_open) == expected
    assert where(after, lambda link: not link.is_open) == set()


TO_1 = {(CLIENTS, party(1)), *((party(n), party(1)) for n in (2, 3, 4))}
FROM_1 = {(target, source) for source, target in TO_1}
AROUND_1 = both((1, 2), (1, 3), (1, 4)) | with_clients(1)

HURT: list[tuple[str, Mapping[str, Option], Link, Ways]] = [
    ("delay", {"latency_ms": 50, "jitter_ms": 100}, Link(latency_s=0.05, jitter_s=0.1), AROUND_1),
    ("reorder", {"jitter_ms": 300}, Link(jitter_s=0.3), AROUND_1),
    ("loss", {"chance": 0.25}, Link(loss=0.25), AROUND_1),
    ("lost-responses", {"api": 0, "silently": False}, Link(lost_apis={0: False}), FROM_1),
    ("lost-requests", {"api": 0, "silently": True}, Link(lost_apis={0: True}), TO_1),
]


def hurts(link: Link) -> tuple[float, float, float, dict[int, bool]]:
    return link.latency_s, link.jitter_s, link.loss, link.lost_apis


@pytest.mark.parametrize(("kind", "options", "expected", "ways"), HURT)
def test_each_slowness_and_loss_touches_its_links_and_heals(
    kind: str, options: Mapping[str, Option], expected: Link, ways: Ways
) -> None:
    during, after = struck(kind, options)
    untouched = hurts(Link())
    assert where(during, lambda link: hurts(link) == hurts(expected)) == ways
    assert where(during, lambda link: hurts(link) != untouched) == ways
    assert where(after, lambda link: hurts(link) != untouched) == set()


def test_no_fault_of_the_network_is_without_a_test() -> None:
    tested = {kind for kind, *_ in CUT} | {kind for kind, *_ in HURT} | {"reset"}
    assert tested == {kind for kind, means in NEEDS.items() if PROXIES in means}
