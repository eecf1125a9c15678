"""The demo's comparison finds every kind of harm, and nothing where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array

import pytest

from logboat.testing.demo.read_back import ReadRecord, compare
from logboat.testing.demo.source_lines import source_lines
from logboat.testing.demo.workload import NOT_ACKNOWLEDGED, UNKNOWN_OFFSET, Workload

LINES = [b"line %d" % number for number in range(6)]


def workload(acknowledged: dict[int, tuple[int, int]]) -> Workload:
    """Without a client: only what was acknowledged, by number."""
    made = Workload.__new__(Workload)
    made.acknowledged = len(acknowledged)
    made.partitions = array("i", [NOT_ACKNOWLEDGED]) * len(LINES)
    made.offsets = array("q", [NOT_ACKNOWLEDGED]) * len(LINES)
    for number, (partition, offset) in acknowledged.items():
        made.partitions[number] = partition
        made.offsets[number] = offset
    return made


def record(number: int, partition: int, offset: int, value: bytes | None = None) -> ReadRecord:
    return ReadRecord(partition, offset, b"%d" % number, value or LINES[number])


ACKNOWLEDGED = {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1)}
ALL = [record(0, 0, 0), record(2, 0, 1), record(1, 1, 0), record(3, 1, 1)]


def test_everything_there_is_held() -> None:
    comparison = compare(workload(ACKNOWLEDGED), LINES, ALL)
    assert comparison.held
    assert (comparison.acknowledged, comparison.read, comparison.lost) == (4, 4, 0)


def test_a_record_without_acknowledgement_may_be_there() -> None:
    assert compare(workload(ACKNOWLEDGED), LINES, [*ALL, record(4, 0, 2)]).held


def test_a_repetition_is_acknowledged_without_a_place_and_stands_once() -> None:
    """Answered DUPLICATE_SEQUENCE_NUMBER: the client says delivered, and no offset."""
    acknowledged = ACKNOWLEDGED | {3: (1, UNKNOWN_OFFSET)}
    assert compare(workload(acknowledged), LINES, ALL).held
    assert compare(workload(acknowledged), LINES, ALL[:-1]).lost == 1
    assert compare(workload(acknowledged), LINES, [*ALL[:-1], record(3, 0, 2)]).lost == 1


def test_a_missing_record_is_lost() -> None:
    comparison = compare(workload(ACKNOWLEDGED), LINES, ALL[:-1])
    assert not comparison.held
    assert (comparison.read, comparison.lost) == (3, 1)


@pytest.mark.parametrize(
    ("read", "complaint"),
    [
        ([*ALL, record(3, 1, 2)], "second time"),
        ([record(2, 0, 0), record(0, 0, 1), *ALL[2:]], "acknowledged at"),
        ([*ALL, record(5, 0, 2), record(4, 0, 3)], "out of order"),
        ([*ALL, record(4, 0, 2, b"other")], "never produced"),
        ([*ALL, ReadRecord(0, 2, None, b"x")], "never produced"),
        ([*ALL, ReadRecord(0, 2, b"77", b"x")], "never produced"),
    ],
)
def test_other_harm_is_named(read: list[ReadRecord], complaint: str) -> None:
    comparison = compare(workload(ACKNOWLEDGED), LINES, read)
    assert not comparison.held
    assert complaint in comparison.complaints[0]


def test_source_lines_are_the_same_every_time_and_never_empty() -> None:
    lines = source_lines(5_000)
    assert len(lines) == 5_000
    assert all(lines)
    assert lines == source_lines(5_000)


@pytest.mark.parametrize("records", ["many", "0", "-5", ""])
def test_a_bad_number_of_records_is_a_usage_error(records: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "logboat.testing.demo"],
        env={**os.environ, "RECORDS": records},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
