"""GET /api/v1/quorum/log: what the quorum has decided, readable, in pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from aiohttp.test_utils import TestClient

from logboat.metadata.codec import encode_command
from logboat.metadata.commands import (
    CreateTopics,
    ElectionType,
    ElectLeaders,
    NewController,
    NewTopic,
    PartitionId,
)
from logboat.raftlog.journal import Journal
from logboat.raftlog.log_page import PAGE_BYTES, CommittedEntry, LogPage, page_of
from logboat.raftlog.messages import COMMAND, NO_OP
from tests.http.fake_http_node import FakeNode, NewLog

Http = TestClient[Any, Any]
LOG = "/api/v1/quorum/log"

COMMANDS = {
    12: (2, None),
    13: (2, encode_command(NewController(2, 2))),
    14: (2, b""),
    15: (
        3,
        encode_command(
            CreateTopics(
                13,
                (NewTopic("orders", UUID(int=5), ((1, 2), (2, 1)), {"a": "b"}, 2, 1, False),),
                None,
            )
        ),
    ),
    16: (3, encode_command(ElectLeaders(13, ElectionType(0), (PartitionId(UUID(int=5), 1),)))),
}


class KeptLog(NewLog):
    """Entries 12 to 16; a snapshot covers what was before."""

    def page(self, start: int | None, limit: int) -> LogPage:
        first = 17 - limit if start is None else start
        entries = tuple(
            CommittedEntry(index, term, command)
            for index, (term, command) in COMMANDS.items()
            if first <= index < first + limit and first >= 12
        )
        return LogPage(12, 11, 16, entries)


@pytest.fixture
def node(node: FakeNode) -> FakeNode:
    node.log = KeptLog()
    return node


async def test_entries_are_told_by_the_names_of_their_fields(http: Http, node: FakeNode) -> None:
    document = await (await http.get(f"{LOG}?from=12")).json()
    entries = document.pop("entries")
    assert document == {"node_id": 1, "first_index": 12, "snapshot_index": 11, "commit_index": 16}
    kinds = [(one["index"], one["term"], one["kind"]) for one in entries]
    assert kinds == [
        (12, 2, "NewTerm"),
        (13, 2, "NewController"),
        (14, 2, "Barrier"),
        (15, 3, "CreateTopics"),
        (16, 3, "ElectLeaders"),
    ]
    assert entries[1]["content"] == {"node_id": 2, "term": 2}
    [topic] = entries[3]["content"]["topics"]
    assert topic["topic_id"] == str(UUID(int=5))
    assert topic["assignments"] == [[1, 2], [2, 1]]
    assert topic["configs"] == {"a": "b"}
    assert entries[4]["content"]["election"] == ElectionType(0).name


async def test_without_a_beginning_the_newest_are_told(http: Http, node: FakeNode) -> None:
    document = await (await http.get(f"{LOG}?limit=2")).json()
    assert [one["index"] for one in document["entries"]] == [15, 16]
    beyond = await (await http.get(f"{LOG}?from=17")).json()
    assert beyond["entries"] == []


async def test_what_a_snapshot_covers_is_said_to_be_gone(http: Http, node: FakeNode) -> None:
    response = await http.get(f"{LOG}?from=11")
    assert response.status == 416
    document = await response.json()
    assert document["message"] == "what came before 12 is no longer in the log"
    assert "from 12 on" in document["hint"]
    assert (await http.get(f"{LOG}?limit=1001")).status == 400
    assert (await http.get(f"{LOG}?since=1")).status == 400


async def test_an_observer_asks_a_voter(http: Http, node: FakeNode) -> None:
    voter, node.log = node.log, None
    node.quorum = replace(node.quorum, leader_id=2)
    assert (await http.get(LOG)).status == 503, "which cannot be reached"

    async def answer(question: bytes) -> bytes:
        node.log = voter
        try:
            return await node.answers["quorum"](question)
        finally:
            node.log = None

    node.other_answers["quorum"] = answer
    document = await (await http.get(f"{LOG}?from=15&limit=1")).json()
    assert [one["index"] for one in document["entries"]] == [15]
    refused = await http.get(f"{LOG}?from=1")
    assert refused.status == 416
    assert "from 12 on" in (await refused.json())["hint"]


class HeldEntries:
    """As much of a journal as a page needs."""

    def __init__(self, *sizes: int) -> None:
        # The first one stands in for what the snapshot ends with.
        self.entries = [(bytes([NO_OP]), 10, 1)]
        for index, size in enumerate(sizes, start=11):
            self.entries.append((bytes([COMMAND]) + b"c" * size, index, 2))

    @property
    def first_index(self) -> int:
        return self.entries[0][1]

    @property
    def last_index(self) -> int:
        return self.entries[-1][1]


def indexes(journal: Any, commit: int, start: int | None, limit: int) -> list[int]:
    kept: Journal = journal
    page = page_of(kept, commit_index=commit, snapshot_index=10, start=start, limit=limit)
    assert page.first_index == 11
    return [one.index for one in page.entries]


def test_a_page_holds_committed_entries_only_and_neither_too_many_nor_too_long() -> None:
    small = HeldEntries(1, 1, 1, 1)
    assert indexes(small, 13, 11, 100) == [11, 12, 13]
    assert indexes(small, 14, None, 2) == [13, 14]
    assert indexes(small, 14, None, 100) == [11, 12, 13, 14]
    assert indexes(small, 14, 12, 2) == [12, 13]
    assert indexes(small, 14, 10, 100) == [], "the snapshot's last entry is not kept"
    assert indexes(small, 14, 15, 100) == []
    large = HeldEntries(PAGE_BYTES + 1, 10, PAGE_BYTES)
    assert indexes(large, 13, 11, 100) == [11]
    assert indexes(large, 13, 12, 100) == [12]
