"""Where a log may begin, and what a compacted one must hold: breaches are told, nothing else is."""

from __future__ import annotations

import struct

import pytest

from logboat.jepsen_style.clients.batches import (
    Batch,
    Keyed,
    encode_batch,
    keyed_of,
    padded,
    scan,
)
from logboat.jepsen_style.cluster_scope.compacted import CompactedLogs
from logboat.jepsen_style.cluster_scope.log_starts import LogStarts
from logboat.jepsen_style.schedule.schedule import Retention

KEY = "t-0"
NOW_MS = 1_000_000


class Disk:
    """In place of `NodeDisk`."""

    def __init__(self, *found: Batch) -> None:
        self.found = list(found)

    def batches(self, key: str) -> list[Batch]:
        return self.found


def stored(base_offset: int, *records: bytes | Keyed, epoch: int = 1, at_ms: int = 0) -> bytes:
    data = bytearray(encode_batch(records, timestamp_ms=at_ms))
    struct.pack_into(">q", data, 0, base_offset)
    struct.pack_into(">i", data, 12, epoch)
    return bytes(data)


def batch(base_offset: int, *, at_ms: int) -> Batch:
    (found,) = scan(stored(base_offset, b"one", b"two", at_ms=at_ms))
    return found


OLD, YOUNG = batch(0, at_ms=NOW_MS - 900), batch(2, at_ms=NOW_MS - 100)


def starts(retention: Retention | None) -> LogStarts:
    """Committed to 4, on a disk with what was written last."""
    disk = Disk(YOUNG)
    found = LogStarts(
        {} if retention is None else {"t": retention},
        disks={1: disk},  # type: ignore[dict-item]
        batches_at=lambda key, offset: [OLD if offset < 2 else YOUNG],
    )
    found.committed(KEY, 4)
    return found


@pytest.mark.parametrize(
    ("retention", "start", "reason"),
    [
        (None, 2, "nobody has asked"),
        (Retention(size=YOUNG.size, age_ms=-1), 2, None),
        (Retention(size=YOUNG.size + 1, age_ms=-1), 2, "retention lets more stay"),
        (Retention(size=-1, age_ms=500), 2, None),
        (Retention(size=-1, age_ms=500), 4, "retention lets more stay"),
        (Retention(size=-1, age_ms=50), 4, None),
        (Retention(size=0, age_ms=50), 5, "only what lies below 4 was ever committed"),
    ],
)
def test_a_log_begins_where_size_or_age_lets_it(
    retention: Retention | None, start: int, reason: str | None
) -> None:
    why = starts(retention).why_not(1, KEY, start, NOW_MS)
    assert why is None if reason is None else why is not None and why.startswith(reason)


def test_a_log_may_begin_where_another_was_right_to_begin_or_somebody_asked() -> None:
    found = starts(None)
    found.allow(KEY, 3)
    assert found.why_not(1, KEY, 3, NOW_MS) is None
    assert found.why_not(1, KEY, 4, NOW_MS) is not None


def keyed(key: str, name: str, *, gone: bool = False) -> Keyed:
    return Keyed(key, name, None if gone else padded(name, 20))


class Logs:
    """One member of the ISR, whose log is written anew by `hold`."""

    def __init__(self, *, forgetful: bool = False) -> None:
        self.told: list[str] = []
        self.disk = Disk()
        self.logs = CompactedLogs(
            ["t"],
            forgetful=["t"] if forgetful else [],
            violation=self.told.append,
            members=lambda key: [1],
            disks={1: self.disk},  # type: ignore[dict-item]
        )

    def hold(self, *batches: bytes) -> None:
        self.disk.found = []
        for data in batches:
            (found,) = scan(data)
            self.disk.found.append(found)
            self.logs.appeared(1, KEY, found, data)
        self.logs.changed(1, KEY)
        self.logs.look()

    def commit(self, offset: int, name: str) -> None:
        self.logs.commit(KEY, offset, name, "acknowledged")
        self.logs.look()


A1, B1, A2, A2_GONE = keyed("a", "1"), keyed("b", "1b"), keyed("a", "2"), keyed("a", "2", gone=True)


def test_what_a_later_record_of_its_key_replaces_may_go() -> None:
    logs = Logs()
    logs.hold(stored(0, A1, B1), stored(2, A2))
    for offset, name in enumerate(("1", "1b", "2")):
        logs.commit(offset, name)
    logs.hold(stored(1, B1), stored(2, A2))
    assert logs.told == []


def test_the_last_committed_record_of_a_key_must_stay() -> None:
    logs = Logs()
    logs.hold(stored(0, A1, B1), stored(2, A2))
    logs.commit(0, "1")
    logs.commit(1, "1b")
    # Not committed, and cut off again: the one before it is the last.
    logs.hold(stored(1, B1), stored(2, A2))
    assert logs.told == []
    logs.hold(stored(1, B1))
    (told,) = logs.told
    assert told.startswith("lost: node 1")


def test_an_older_value_does_not_come_back() -> None:
    logs = Logs()
    logs.hold(stored(0, A1), stored(1, A2))
    logs.commit(1, "2")
    logs.hold(stored(0, A1))
    assert len(logs.told) == 1


@pytest.mark.parametrize("forgetful", [True, False])
def test_a_tombstone_goes_where_its_time_is_short(forgetful: bool) -> None:
    logs = Logs(forgetful=forgetful)
    logs.hold(stored(0, A1, B1), stored(2, A2_GONE))
    logs.commit(1, "1b")
    logs.commit(2, "2")
    logs.hold(stored(1, B1))
    assert len(logs.told) == (0 if forgetful else 1)
    logs.hold(stored(0, A1, B1))
    assert len(logs.told) == (1 if forgetful else 2)


def test_an_offset_names_one_record_in_an_epoch_whatever_is_cleaned() -> None:
    logs = Logs()
    logs.hold(stored(0, A1, B1))
    logs.hold(stored(1, B1))
    assert logs.told == []
    logs.hold(stored(1, A2))
    assert any(told.startswith("names: ") for told in logs.told)


def test_an_offset_is_answered_with_one_record() -> None:
    logs = Logs()
    logs.hold(stored(0, A1, B1))
    logs.commit(0, "1b")
    assert any(told.startswith("one record: ") for told in logs.told)


def test_records_with_keys_are_read_as_they_were_written() -> None:
    records = [A1, B1, A2_GONE, keyed("ключ", "3")]
    assert keyed_of(stored(7, *records)) == list(enumerate(records, start=7))
