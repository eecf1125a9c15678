"""What was broken on purpose is remembered: bounded, and beyond the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.seam.fault_history import MOST_KEPT, FaultHistory, InjectedFault
from logboat.seam.real_disk import RealDisk
from tests.seam.injected import SetClock
from tests.seam.memory_disk import MemoryDisk


@pytest.fixture
def disk() -> Iterator[RealDisk]:
    real = RealDisk()
    yield real
    real.close()


def test_a_fault_is_noted_with_its_end_and_healing_ends_it_earlier() -> None:
    clock = SetClock(1000)
    history = FaultHistory(clock)
    history.note("partition", 10, "ann", node=2)
    history.note("clock", 0.5, "bob", amount="-1h")
    clock.ms = 3000
    history.healed()
    assert history.entries() == [
        InjectedFault("partition", 1000, 3000, "ann", node=2),
        InjectedFault("clock", 1000, 1500, "bob", amount="-1h"),
    ]


def test_the_next_process_knows_and_that_the_fault_ended_with_the_one_before(
    disk: RealDisk, tmp_path: Path
) -> None:
    path, clock = f"{tmp_path}/faults", SetClock(1000)
    history = FaultHistory(clock, disk, path)
    history.note("disk-full", 60, "ann")
    history.note("partition", 1, "ann", node=3)
    clock.ms = 5000
    again = FaultHistory(clock, disk, path)
    again.note("pause", 2, "bob")
    assert [(one.kind, one.until_ms) for one in again.entries()] == [
        ("disk-full", 5000),
        ("partition", 2000),
        ("pause", 7000),
    ]
    clock.ms = 6000
    again.healed()
    clock.ms = 9000
    assert FaultHistory(clock, disk, path).entries() == again.entries()


def test_a_torn_or_foreign_line_is_missing_and_nothing_more(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "faults"
    FaultHistory(SetClock(), disk, str(path)).note("pause", 1, "ann")
    path.write_bytes(b"[]\n{}\nno json\n" + path.read_bytes() + b'{"kind": "cu')
    assert [one.kind for one in FaultHistory(SetClock(), disk, str(path)).entries()] == ["pause"]


def test_old_faults_are_forgotten_in_memory_and_in_the_file(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "faults"
    history = FaultHistory(SetClock(), disk, str(path))
    for number in range(2 * MOST_KEPT + 5):
        history.note("partition", 1, "ann", node=number)
    kept = history.entries()
    assert len(kept) == MOST_KEPT
    assert kept[-1].node == 2 * MOST_KEPT + 4
    assert path.read_bytes().count(b"\n") == MOST_KEPT + 4
    later = SetClock(SetClock().ms + 1000)
    assert FaultHistory(later, disk, str(path)).entries() == kept


def test_a_disk_that_refuses_it_does_not_stop_anybody(disk: RealDisk, tmp_path: Path) -> None:
    history = FaultHistory(SetClock(), disk, f"{tmp_path}/no/such/folder")
    history.note("pause", 1, "ann")
    assert len(history.entries()) == 1


GARBAGE = st.one_of(
    st.binary(min_size=1, max_size=12), st.sampled_from([b"9", b'"', b"[", b"\n", b"null", b"\0"])
)


@given(choices=st.data())
def test_a_garbled_history_costs_the_lines_that_are_garbled(choices: st.DataObject) -> None:
    disk = MemoryDisk("/data")
    for kind in ("pause", "disk-full"):
        history = FaultHistory(SetClock(1000), disk, "/data/faults")
        history.note(kind, 1, "ann", node=2)
    file = disk.open("/data/faults")
    data = bytearray(file.read_at(0, file.size()))
    assert data.count(b"\n") == 3
    at = choices.draw(st.integers(0, len(data) - 1))
    garbage = choices.draw(GARBAGE)
    if choices.draw(st.booleans()):
        data[at : at + len(garbage)] = garbage
    else:
        data[at:] = garbage
    file.truncate(0)
    file.append([data])
    again = FaultHistory(SetClock(5000), disk, "/data/faults")
    again.note("pause", 2, "bob")
    assert again.entries()[-1] == InjectedFault("pause", 5000, 7000, "bob")


@pytest.mark.parametrize(
    "line", [b'["ended_ms"]', b'{"ended_ms": "x"}', b'{"ended_ms": null}', b"5", b'"ended_ms"']
)
def test_a_line_that_is_json_and_no_fault_is_missing(line: bytes) -> None:
    disk = MemoryDisk("/data")
    disk.open("/data/faults", create=True).append([line, b"\n"])
    assert FaultHistory(SetClock(), disk, "/data/faults").entries() == []
