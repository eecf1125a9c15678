"""What the executor on processes draws, refuses, and makes of a run's numbers."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logboat.client.cluster.folder import ClusterFolder
from logboat.jepsen_style.__main__ import main
from logboat.jepsen_style.history import Outcome, Recorder, read_history
from logboat.jepsen_style.history.written import WrittenHistory
from logboat.jepsen_style.processes.caretaker import Caretaker
from logboat.jepsen_style.processes.clocks import Clocks
from logboat.jepsen_style.processes.coverage import Coverage, Phase
from logboat.jepsen_style.processes.disk_faults import DiskFaults
from logboat.jepsen_style.processes.draw import MODES, draw
from logboat.jepsen_style.processes.keeper import Keeper
from logboat.jepsen_style.processes.links import CLIENTS, Links, party
from logboat.jepsen_style.processes.means import LOOP, NEEDS, ROOT_ONLY, STRACE, Means
from logboat.jepsen_style.processes.network_faults import NetworkFaults
from logboat.jepsen_style.processes.outcome import Floors, Tally, Word, unavailable
from logboat.jepsen_style.processes.process_faults import ProcessFaults
from logboat.jepsen_style.processes.strikes import NotBuilt, refuse_unknown
from logboat.jepsen_style.processes.volumes import EXT4, Volumes
from logboat.jepsen_style.processes.wrong_clock import WrongClock
from logboat.jepsen_style.schedule import KINDS, Fault, Schedule, Target, Topic
from logboat.jepsen_style.schedule.kinds import Option
from logboat.testing import LocalCluster

FULL = Tally(
    operations=5_000,
    acknowledged=1_000,
    strikes=60,
    kinds=5,
    leaders_killed=2,
    read_everything=True,
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("minutes", [1, 2, 10])
def test_every_drawn_schedule_asks_for_more_than_the_floors(mode: str, minutes: float) -> None:
    floors = Floors.of(minutes)
    for seed in range(50):
        schedule = draw(seed, nodes=3, minutes=minutes, mode=mode, root=seed % 2 == 0)
        refuse_unknown(schedule)
        assert Schedule.from_json(schedule.to_json()) == schedule
        kinds = Counter(fault.kind for fault in schedule.faults)
        assert len(schedule.faults) >= floors.strikes
        assert len(kinds) >= floors.kinds
        assert kinds["kill"] >= floors.leaders_killed
        assert all(f.at_ms + f.for_ms <= schedule.hurt_ms for f in schedule.faults)


def test_a_seed_draws_the_same_schedule_again() -> None:
    assert draw(3, nodes=5, minutes=1, mode="synced") == draw(3, nodes=5, minutes=1, mode="synced")
    assert draw(3, nodes=5, minutes=1, mode="synced") != draw(4, nodes=5, minutes=1, mode="synced")


def test_a_page_cache_topic_never_loses_all_its_replicas_at_once() -> None:
    for seed in range(50):
        schedule = draw(seed, nodes=3, minutes=2, mode="page-cache", root=True)
        assert not schedule.is_synced(schedule.topics[0])
        assert not {"kill-all", "blackout"} & {fault.kind for fault in schedule.faults}


def disk_faults(keeper: Keeper, volumes: Volumes | None, *, traces: bool) -> DiskFaults:
    cluster = Crashed(3)
    caretaker = Caretaker(cluster, keeper)
    return DiskFaults(cluster, keeper, volumes, caretaker, Random(1), traces=traces)


def test_every_kind_that_needs_means_is_carried_out_by_them(tmp_path: Path) -> None:
    cluster = LocalCluster(3)
    keeper = Keeper(Crashed(3))
    volumes = SimpleNamespace(kind=EXT4)
    carried_out = {
        *ProcessFaults(cluster, keeper).kinds,
        *NetworkFaults(Links(), [1, 2, 3], lambda node_id: None).kinds,
        *disk_faults(keeper, cast(Volumes, volumes), traces=True).kinds,
        *Clocks([1, 2, 3], tmp_path / "clocks", None).kinds,
    }
    assert carried_out == set(NEEDS)
    assert set(KINDS) >= carried_out


def test_what_is_missing_is_skipped_by_name_and_the_next_best_is_taken() -> None:
    means = Means({STRACE: "strace is not installed", LOOP: "no loop devices"})
    assert means.of("failed-sync") is None
    assert means.of("power-cut") is None
    assert means.of("full-disk") == "full tmpfs"
    assert means.volumes == "tmpfs"
    lines = means.lines()
    assert (
        "skipped, no strace: strace is not installed: failed-sync, slow-disk, kill-at-sync" in lines
    )
    assert "by full tmpfs (no ext4 on loop devices: no loop devices): full-disk" in lines
    faults = disk_faults(Keeper(Crashed(3)), None, traces=False)
    assert set(faults.kinds) == {name for name, kind in KINDS.items() if kind.damages}


def test_without_root_nothing_that_needs_it_is_touched() -> None:
    means = Means(dict.fromkeys(ROOT_ONLY, "it needs --root"))
    assert means.volumes is None
    assert {kind for kind in NEEDS if means.of(kind) is None} == {
        "power-cut",
        "blackout",
        "full-disk",
    }
    assert means.of("isolate") == "proxies"


def test_a_fault_that_only_the_simulation_has_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = draw(1, nodes=3, minutes=1, mode="synced")
    fault = Fault(100, "write-error", Target("node", number=1), 100)
    file = tmp_path / "schedule.json"
    file.write_bytes(replace(drawn, faults=(fault,)).to_json())
    with pytest.raises(SystemExit) as raised:
        main(["replay", str(file), "--folder", str(tmp_path / "run")])
    assert raised.value.code == 2
    assert "write-error" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "targets",
    [
        (Target("node", number=1), Target("node", number=2)),
        (Target("leader", "orders"),),
    ],
)
def test_more_damaged_disks_than_a_partition_can_spare_are_refused(
    targets: tuple[Target, ...],
) -> None:
    drawn = draw(1, nodes=3, minutes=1, mode="synced")
    faults = tuple(Fault(100, "wiped-disk", target, 100) for target in targets)
    with pytest.raises(NotBuilt, match="at most 1 disks"):
        refuse_unknown(replace(drawn, faults=faults))


@pytest.mark.parametrize(
    "configs",
    [{"cleanup.policy": "compact"}, {"retention.bytes": "1000"}, {"retention.ms": "500"}],
)
def test_topics_whose_records_go_by_themselves_are_refused(configs: dict[str, str]) -> None:
    drawn = draw(1, nodes=3, minutes=1, mode="synced")
    topic = Topic("passing", 1, 3, {**configs, "min.insync.replicas": "2"})
    with pytest.raises(NotBuilt, match="go by themselves"):
        refuse_unknown(replace(drawn, topics=(*drawn.topics, topic)))


def test_drawn_schedules_damage_one_disk_and_always_the_same() -> None:
    for seed in range(30):
        schedule = draw(seed, nodes=5, minutes=2, mode="synced")
        damaged = [fault.target for fault in schedule.faults if KINDS[fault.kind].damages]
        assert damaged
        assert len(set(damaged)) == 1


@pytest.mark.parametrize("kind", ["power-cut", "bit-flip"])
def test_no_disk_loses_anything_where_a_topic_trusts_the_page_cache(kind: str) -> None:
    """Others may have left ISR and ELR by a mere kill: it would be a loss outside the guarantee,
    which this executor does not judge."""
    drawn = draw(1, nodes=3, minutes=2, mode="page-cache", root=True)
    refuse_unknown(drawn)
    fault = Fault(100, kind, Target("node", number=1), 100)
    with pytest.raises(NotBuilt, match="trusts the page cache"):
        refuse_unknown(replace(drawn, faults=(fault,)))


def test_a_full_run_is_not_weak() -> None:
    assert FULL.weaknesses(Floors.of(10)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"acknowledged": 999},
        {"strikes": 59},
        {"kinds": 4},
        {"leaders_killed": 1},
        {"read_everything": False},
    ],
)
def test_each_floor_that_is_missed_makes_a_run_too_weak(change: dict[str, Any]) -> None:
    assert len(replace(FULL, **change).weaknesses(Floors.of(10))) == 1


def test_a_short_run_is_asked_for_fewer_faults_and_for_nothing_else_less() -> None:
    assert Floors.of(0.3) == Floors(acknowledged=1_000, strikes=2, kinds=5, leaders_killed=2)


def test_the_last_line_and_the_status() -> None:
    tally = replace(FULL, unavailable_s=2.345, lost=1)
    expected = "run: violation | ops=5000 acknowledged=1000 lost=1 faults=60 unavailable_s=2.3"
    assert tally.line(Word.VIOLATION) == expected
    assert {word: word.status for word in Word} == {
        Word.HELD: 0,
        Word.VIOLATION: 1,
        Word.OUTSIDE: 1,
        Word.UNDECIDED: 1,
        Word.TOO_WEAK: 3,
    }


def test_gaps_of_two_partitions_count_once_where_they_overlap() -> None:
    one = [100.5, 103.5, 104.0]
    other = [100.5, 101.0, 104.5]
    assert unavailable([one, other], 100.0, 105.0) == pytest.approx(4.0)
    assert unavailable([[100.5, 101.5]], 100.0, 102.0) == 0.0


def test_a_partition_that_never_answers_is_unavailable_all_the_time() -> None:
    assert unavailable([[]], 10.0, 15.0) == 5.0


def test_the_coverage_counts_cells_that_were_hit_among_the_reachable() -> None:
    coverage = Coverage([("kill", "leader"), ("pause", "leader")])
    coverage.add("kill", "leader", Phase.WHOLE)
    coverage.add("kill", "leader", Phase.WHOLE)
    assert coverage.strikes == 2
    assert coverage.summary() == "coverage: 1 of 6 cells (fault x role x phase)"
    assert ("kill", "leader", "2", ".", ".") in coverage.rows()
    assert ("pause", "leader", ".", ".", ".") in coverage.rows()


def test_a_one_way_isolation_cuts_one_direction_and_heals() -> None:
    async def test() -> None:
        links = Links()
        network = NetworkFaults(links, [1, 2, 3], lambda node_id: None)
        options: dict[str, Option] = {"direction": "in", "clients": True}
        fault = Fault(0, "isolate", Target("node", number=1), 100, options)
        heal = await network.kinds["isolate"](fault, [1])
        for other in (party(2), party(3), CLIENTS):
            assert not links.link(other, party(1)).is_open
            assert links.link(party(1), other).is_open
        assert links.link(party(2), party(3)).is_open
        await heal()
        assert all(link.is_open for link in links.known.values())

    asyncio.run(test())


def test_what_is_written_reads_back_as_the_history_it_was(tmp_path: Path) -> None:
    output = io.BytesIO()
    history = WrittenHistory(Recorder(output))
    history.invoke(0, "send", [["send", "orders-0", "a"]], 10)
    seen = {"process": "nemesis", "type": "info", "f": "fault", "value": {"kind": "kill"}}
    history.observe({**seen, "time": 11})
    history.invoke(1, "poll", [["poll"]], 12)
    history.complete(0, Outcome.INFO, [["send", "orders-0", "a"]], 13)
    history.complete(1, Outcome.OK, [["poll", {"orders-0": [[0, "a"]]}]], 14)
    path = tmp_path / "history.jsonl"
    path.write_bytes(output.getvalue())
    again = read_history(path)
    assert list(again) == list(history)
    assert [event["f"] for _, event in again.observations] == ["fault"]


class Crashed(LocalCluster):
    """Node 2 is not there any more."""

    folder = ClusterFolder("/nowhere")

    @property
    def node_ids(self) -> list[int]:
        return [1, 2, 3]

    def is_running(self, node_id: int) -> bool:
        return node_id != 2

    def kill(self, node_id: int) -> None:
        pass

    def start(self, node_id: int, *, wait: bool = True) -> None:
        self.started = node_id


def strike(keeper: Keeper, cluster: LocalCluster) -> None:
    async def kill() -> None:
        faults = ProcessFaults(cluster, keeper)
        await faults.kinds["kill"](Fault(0, "kill", Target("leader"), 10), [2])

    asyncio.run(kill())


def test_a_node_that_ended_by_itself_is_not_forgotten_when_a_fault_restarts_it() -> None:
    cluster = Crashed(3)
    keeper = Keeper(cluster)
    strike(keeper, cluster)
    (failure,) = keeper.failures
    assert failure.startswith("failed: node 2 ended by itself")
    assert keeper.dead() == []
    assert keeper.leaders_killed == 1


def test_a_node_whose_disk_fails_may_end_and_is_started_when_that_is_over() -> None:
    cluster = Crashed(3)
    keeper = Keeper(cluster)
    keeper._excuses[2] += 1
    assert keeper.dead() == []
    keeper.excuse([2])
    keeper.expect([2])
    assert keeper.failures == []
    assert cluster.started == 2
    keeper.expect([2])
    assert keeper.dead() != []


def test_a_wrong_clock_goes_as_its_file_says_and_is_right_again(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    now = 1_000_000_000_000
    clock = WrongClock(str(file), lambda: now, lambda: now)
    file.write_text("+1800\n")
    assert clock.time_ns() - now == 1_800_000_000_000
    file.write_text("+0 x1.5\n")
    now += 1_000_000_000
    assert clock.time_ns() == now
    now += 2_000_000_000
    assert clock.time_ns() - now == 1_000_000_000
    file.write_text("+0\n")
    now += 1_000_000_000
    assert clock.time_ns() == now
