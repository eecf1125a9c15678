"""Small histories with known verdicts: cases C01 and C03, and each class beside its neighbour."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from logboat.jepsen_style import checkers
from logboat.jepsen_style.__main__ import main
from logboat.jepsen_style.check_command import check
from logboat.jepsen_style.checkers import Status
from logboat.jepsen_style.checkers.kafka import Guarantee, KafkaReport, report_on
from logboat.jepsen_style.checkers.kafka.check import LEVELS
from logboat.jepsen_style.checkers.linearizability import check_linearizable, model_named
from logboat.jepsen_style.checkers.linearizability.brute_force import linearizable_by_trying
from logboat.jepsen_style.checkers.linearizability.check import check_calls
from logboat.jepsen_style.checkers.linearizability.models import Call, Register
from logboat.jepsen_style.checkers.transactions import check_list_append
from logboat.jepsen_style.checkers.transactions.properties import ALWAYS, DATA_CYCLES
from logboat.jepsen_style.history import History, Outcome
from logboat.jepsen_style.judge import CHECKERS, judge
from logboat.jepsen_style.manifest import check_manifest
from logboat.jepsen_style.mutants.catalogue import CATALOGUE
from logboat.jepsen_style.mutants.kafka_stories import STORIES, Story, told
from logboat.jepsen_style.mutants.run import BENCHES, LEAST_MUTANTS, MutatedModule, run
from logboat.jepsen_style.report.page import page

DATA = Path(os.environ.get("LOGBOAT_TEST_DATA", "../shared")) / "histories"


def story_report(name: str, *, bad: bool, seed: int = 1) -> KafkaReport:
    story = told(name, Random(seed), bad=bad)
    return report_on(story.history, story.settings)


REPORTS = {
    "inconsistent_offsets": "inconsistent-offsets",
    "duplicate": "duplicate",
    "lost_write": "lost-write",
    "unseen": "unseen",
    "aborted_read": "G1a",
    "phantom": "phantom",
    "precommitted_read": "precommitted-read",
    "int_poll_skip": "int-poll-skip",
    "int_nonmonotonic_poll": "int-nonmonotonic-poll",
    "int_repeated_poll": "int-nonmonotonic-poll",
    "poll_skip": "poll-skip",
    "nonmonotonic_poll": "nonmonotonic-poll",
    "kept_assignment": "nonmonotonic-poll",
    "nonmonotonic_send": "nonmonotonic-send",
    "nonmonotonic_unknown_send": "nonmonotonic-send",
    "int_nonmonotonic_send": "int-nonmonotonic-send",
    "int_send_skip": "int-send-skip",
    "append_order_inversion": "append-order-inversion",
    "write_cycle": "G0",
    "read_cycle": "G1c",
    "read_from_the_future": "G1c-realtime",
    "intermediate_read": "G1b",
    "stale_end": "stale-end",
    "end_went_back": "end-went-back",
    "lost_commit": "lost-commit",
    "two_owners": "two-owners",
    "generation_went_back": "generation-went-back",
    "stale_commit": "stale-commit",
    "skipped_by_group": "skipped-by-group",
    "topics": "topics-not-linearizable",
    "unknown_deletion": "topics-not-linearizable",
    "epoch_records": "two-records-in-epoch",
    "lost_at_rest": "lost-at-rest",
    "one_acknowledgement": "lost-write",
    "leaders": "two-leaders",
    "epochs": "epoch-went-back",
    "stale_isr": "isr-by-stale-epoch",
    "high_watermark": "high-watermark-went-back",
    "replicas": "replica-divergence",
    "truncation": "truncated-acked-record",
}


@pytest.mark.parametrize("name", REPORTS)
def test_each_class_is_reported_and_its_nearest_neighbour_is_not(name: str) -> None:
    for seed in range(4):
        assert REPORTS[name] in story_report(name, bad=True, seed=seed).verdict.kinds
        assert REPORTS[name] not in story_report(name, bad=False, seed=seed).verdict.kinds


@pytest.mark.parametrize(
    ("name", "bad", "guarantee"),
    [
        ("clean", False, Guarantee.HELD),
        ("lost_write", True, Guarantee.VIOLATION),
        ("last_replica", True, Guarantee.VIOLATION),
        ("last_replica", False, Guarantee.OUTSIDE),
        ("entered_again", True, Guarantee.VIOLATION),
        ("entered_again", False, Guarantee.OUTSIDE),
        ("power_cut", True, Guarantee.VIOLATION),
        ("power_cut", False, Guarantee.OUTSIDE),
        ("late_change", True, Guarantee.VIOLATION),
        ("late_change", False, Guarantee.UNDECIDED),
        ("leaderless", False, Guarantee.UNDECIDED),
        ("lost_at_rest", True, Guarantee.VIOLATION),
        ("replaced", True, Guarantee.VIOLATION),
        ("replaced", False, Guarantee.OUTSIDE),
        ("replaced_too_early", True, Guarantee.VIOLATION),
        ("replaced_too_early", False, Guarantee.OUTSIDE),
        ("begun_again", False, Guarantee.OUTSIDE),
        ("one_acknowledgement", False, Guarantee.HELD),
        ("forgotten_group", True, Guarantee.VIOLATION),
        ("forgotten_group", False, Guarantee.OUTSIDE),
        ("commit_after_the_loss", True, Guarantee.VIOLATION),
        ("commit_after_the_loss", False, Guarantee.OUTSIDE),
        ("invented_commit", False, Guarantee.OUTSIDE),
        ("offset_used_again", False, Guarantee.OUTSIDE),
    ],
)
def test_ledger_rules_on_every_missing_record(name: str, bad: bool, guarantee: Guarantee) -> None:
    report = story_report(name, bad=bad)
    assert report.guarantee is guarantee
    for _, ruling in report.rulings:
        assert ruling.guarantee is guarantee
        assert ruling.reason
        if guarantee is Guarantee.OUTSIDE:
            assert ruling.place is not None


ORDER_AFTER_A_LOSS = {"append-order-inversion", "nonmonotonic-send", "nonmonotonic-poll"}


@pytest.mark.parametrize("name", ["begun_again", "begun_again_too_early"])
def test_order_broken_by_a_loss_outside_the_guarantee_is_no_violation(name: str) -> None:
    for seed in range(4):
        explained = story_report(name, bad=False, seed=seed)
        assert explained.verdict.status is Status.VALID
        assert explained.guarantee is Guarantee.OUTSIDE
        assert explained.levels["L2 order"] is Status.VALID
        assert {anomaly.kind for anomaly in explained.verdict.reported} >= ORDER_AFTER_A_LOSS
        # A holder that was killed still holds, and what came before a wipe did not come of it.
        broken = story_report(name, bad=True, seed=seed)
        assert broken.levels["L2 order"] is Status.INVALID
        assert {anomaly.kind for anomaly in broken.verdict.anomalies} >= ORDER_AFTER_A_LOSS
        assert broken.rulings == ()


def test_poll_may_pass_over_none_but_records_outside_the_guarantee() -> None:
    explained = story_report("passed_over", bad=False)
    assert explained.verdict.status is Status.VALID
    assert {"poll-skip", "lost-write"} <= {a.kind for a in explained.verdict.reported}
    assert explained.guarantee is Guarantee.OUTSIDE
    broken = story_report("passed_over", bad=True)
    assert {"poll-skip", "lost-write"} <= {a.kind for a in broken.verdict.anomalies}
    assert broken.guarantee is Guarantee.VIOLATION


def test_what_a_group_forgot_is_excused_by_a_loss_of_its_own_partition_only() -> None:
    forgotten = {"lost-commit", "two-owners", "generation-went-back"}
    explained = story_report("forgotten_group", bad=False)
    assert explained.verdict.status is Status.VALID
    assert {anomaly.kind for anomaly in explained.verdict.reported} >= forgotten
    killed = story_report("forgotten_group", bad=True)
    assert {anomaly.kind for anomaly in killed.verdict.anomalies} == forgotten
    # Where nobody said which partition keeps the group, nothing is excused.
    story = told("forgotten_group", Random(1), bad=False)
    story.history.observations = [
        (place, event) for place, event in story.history.observations if event["f"] != "group"
    ]
    assert {a.kind for a in report_on(story.history).verdict.anomalies} == forgotten


def test_a_commit_that_nobody_made_is_explained_by_no_loss() -> None:
    report = story_report("invented_commit", bad=True)
    assert [anomaly.kind for anomaly in report.verdict.anomalies] == ["lost-commit"]


def test_no_loss_explains_a_cycle_and_a_replaced_record_makes_none() -> None:
    broken = story_report("offset_used_again", bad=True)
    assert [anomaly.kind for anomaly in broken.verdict.anomalies] == ["G1c-realtime"]
    explained = story_report("offset_used_again", bad=False)
    assert explained.verdict.status is Status.VALID
    assert not any("G1c" in kind for kind in explained.verdict.kinds)


def test_epochs_and_leaders_have_no_excuse() -> None:
    story = told("epochs", Random(1), bad=True)
    for node in (1, 2, 3):
        story.history.observations.insert(
            0, (0, {"process": "nemesis", "f": "fault", "value": {"kind": "wipe", "node": node}})
        )
    assert "epoch-went-back" in {a.kind for a in report_on(story.history).verdict.anomalies}


def test_a_value_that_nobody_wrote_into_a_register_is_reported() -> None:
    history = History()
    history.invoke(0, "txn", [["r", "x", None]], 0)
    history.complete(0, Outcome.OK, [["r", "x", 9]], 1)
    verdict = judge(history, "rw-register", property="serializable")
    assert [anomaly.kind for anomaly in verdict.reported] == ["unwritten-read"]


def test_levels_have_their_own_verdicts_and_recency_is_not_claimed() -> None:
    report = story_report("stale_end", bad=True)
    assert report.verdict.status is Status.VALID
    assert report.levels["L3 recency"] is Status.INVALID
    report = story_report("append_order_inversion", bad=True)
    assert report.levels["L2 order"] is Status.INVALID
    assert report.levels["L1 durability"] is Status.VALID


def test_gaps_and_redelivery_are_no_loss_c01() -> None:
    story = Story(Random(0))
    # (a) a marker takes offset 2, (b) aborted records take 5 to 7.
    offsets = (0, 1, 3, 4, 8)
    for value, offset in enumerate(offsets):
        story.send(0, value, offset)
    # (d) and (e): two sends time out; one record appears.
    for value in (50, 51):
        story.begin(value, [["send", "x", value]])
        story.end(value, None, Outcome.INFO)
    pairs = [*((offset, value) for value, offset in enumerate(offsets)), (9, 50)]
    story.poll(5, *pairs)
    # (c) the consumer reads again after its partition went and came back.
    story.assign(5, "y")
    story.assign(5, "x")
    story.poll(5, *pairs[2:])
    verdict = report_on(story.history).verdict
    assert verdict.status is Status.VALID
    assert not verdict.anomalies


@pytest.mark.parametrize("name", ["lost_write", "duplicate", "nonmonotonic_send", "compaction"])
def test_bad_twins_name_the_operation_and_the_offset_c01(name: str) -> None:
    anomalies = story_report(name, bad=True).verdict.anomalies
    assert anomalies
    assert all(anomaly.operations and "offset" in anomaly.details for anomaly in anomalies)


def register_history(*operations: tuple[int, str, Any, str]) -> History:
    """(process, function, value, ok|fail|open) one after another."""
    history = History()
    for process, function, value, outcome in operations:
        history.invoke(process, function, None if function == "read" else value, 0)
        if outcome != "open":
            history.complete(process, Outcome[outcome.upper()], value, 0)
    return history


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([(0, "write", 1, "ok"), (0, "write", 2, "ok"), (1, "read", 1, "ok")], False),
        (
            [
                (0, "write", 1, "ok"),
                (2, "write", 1, "open"),
                (0, "write", 2, "ok"),
                (1, "read", 1, "ok"),
            ],
            True,
        ),
        ([(0, "write", 1, "ok"), (1, "cas", [5, 7], "fail"), (0, "read", 7, "ok")], False),
        ([(0, "read", 1, "ok"), (1, "write", 1, "ok")], False),
    ],
)
def test_verdicts_of_c03(operations: list[tuple[int, str, Any, str]], expected: bool) -> None:
    history = register_history(*operations)
    verdict = check_linearizable(history, model_named("cas-register"))
    assert (verdict.status is Status.VALID) == expected


def test_exhaustive_small_registers_agree_with_the_definition_c03() -> None:
    """Every order of events of three operations, over two values, with one crash or none."""
    model = Register(None)
    calls = [Call("write", 1), Call("write", 2), Call("read", None, 1), Call("read", None, None)]
    shapes = {
        tuple(order)
        for order in product(range(3), repeat=6)
        if all(order.count(number) == 2 for number in range(3))
    }
    compared = 0
    for shape in shapes:
        places = [[p for p, n in enumerate(shape) if n == number] for number in range(3)]
        for chosen in product(calls, repeat=3):
            for crashed in (None, 0):
                timed = [
                    (call, places[n][0], 2**63 - 1 if n == crashed else places[n][1], n)
                    for n, call in enumerate(chosen)
                    if not (n == crashed and call.function == "read")
                ]
                expected = linearizable_by_trying(timed, model)
                verdict = check_calls(timed, model, None, minimise=False)
                assert (verdict.status is Status.VALID) == expected
                compared += 1
    assert compared > 10_000


def test_history_that_could_not_fail_is_unknown_c03() -> None:
    writes = register_history((0, "write", 1, "ok"), (0, "write", 2, "ok"))
    assert judge(writes, "register").status is Status.UNKNOWN
    assert judge(writes, "register", demand_evidence=False).status is Status.VALID
    story = Story(Random(0))
    story.begin(0, [["send", "x", 1]])
    story.end(0, None, Outcome.INFO)
    assert judge(story.history, "Kafka").status is Status.UNKNOWN


def test_failure_is_shown_by_a_small_part() -> None:
    history = register_history(
        *((0, "write", value, "ok") for value in range(20)),
        (1, "read", 3, "ok"),
        *((0, "write", value, "ok") for value in range(20, 40)),
    )
    [anomaly] = check_linearizable(history, model_named("register")).anomalies
    assert 20 in anomaly.operations
    assert len(anomaly.operations) < len(history) / 2


def test_giant_component_still_gets_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from logboat.jepsen_style.checkers.transactions import cycles

    monkeypatch.setattr(cycles, "SEARCH_BUDGET", 0)
    history = History()
    for process, own, other in ((0, "x", "y"), (1, "y", "x")):
        history.invoke(process, "txn", [["append", own, 1], ["r", other, None]], 0)
    for process, own, other in ((0, "x", "y"), (1, "y", "x")):
        history.complete(process, Outcome.OK, [["append", own, 1], ["r", other, [1]]], 0)
    verdict = check_list_append(history)
    assert verdict.status is Status.INVALID
    assert "PL-2-cycle-exists" in verdict.kinds


def test_report_stands_alone_and_shows_the_failure_first() -> None:
    for name in ("lost_write", "last_replica", "clean"):
        story = told(name, Random(1), bad=True)
        report = report_on(story.history)
        text = page(story.history, report.verdict, title=name, kafka=report)
        assert "<script" not in text
        assert 'src="' not in text
        assert "href=" not in text
        if report.verdict.anomalies:
            assert text.index('id="failing"') < text.index("<h2>Clients</h2>")


@pytest.mark.foreign
def test_report_opens_in_chromium(tmp_path: Path, tool: Callable[[str], str]) -> None:
    story = told("lost_write", Random(1), bad=True)
    report = report_on(story.history)
    path = tmp_path / "report.html"
    path.write_text(page(story.history, report.verdict, title="lost", kafka=report))
    alone = ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command = [
        *(tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-sync"),
        *(*alone, f"--user-data-dir={tmp_path}/profile", "--dump-dom", path.as_uri()),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert 'class="invalid" id="status"' in shown
    assert "<rect" in shown


def test_every_mutant_fits_the_code_and_a_sample_is_killed() -> None:
    for mutant in CATALOGUE:
        MutatedModule(mutant)
    assert len(CATALOGUE) >= LEAST_MUTANTS
    assert len({mutant.name for mutant in CATALOGUE}) == len(CATALOGUE)
    cheap = [mutant for mutant in CATALOGUE if mutant.bench in ("kafka", "bank", "long-fork")]
    assert run(cheap[::6]) == []


UNCLAIMED = frozenset({"G0", "G1b", "int-send-skip"})
"""Classes of the Kafka suite that break no level, and are reported all the same."""
CHECKERS_WITHOUT_MUTANTS = frozenset(
    {
        # Shared by several checkers, and broken through each of them.
        *("linearizability.check", "linearizability.shortest", "polynomial.certificate"),
        *("transactions.graph", "transactions.properties", "transactions.transaction"),
        *("kafka.records", "kafka.settings", "kafka.metadata"),
        # The definition itself.
        "linearizability.brute_force",
    }
)


def test_each_checker_has_three_mutants_or_more() -> None:
    root = Path(checkers.__file__).parent
    modules = {
        f"{path.parent.name}.{path.stem}" for path in root.glob("*/*.py") if path.stem != "__init__"
    }
    by_module = Counter(mutant.module for mutant in CATALOGUE)
    by_bench = Counter(mutant.bench for mutant in CATALOGUE)
    checkers_by_module = {
        module: count
        for module, count in by_module.items()
        if module not in CHECKERS_WITHOUT_MUTANTS
    }
    assert set(checkers_by_module) == modules - CHECKERS_WITHOUT_MUTANTS
    assert set(by_bench) == set(BENCHES)
    assert min(checkers_by_module.values()) >= 3
    assert min(by_bench.values()) >= 3


def classes_with_a_mutant(bench: str) -> set[str]:
    """By the name of a mutant: `bench: class`, or `bench: class: what is wrong`."""
    return {m.name.split(": ")[1].partition(" by ")[0] for m in CATALOGUE if m.bench == bench}


CLASSES_OF: Mapping[str, str] = {
    "list-append": "transactions/list_append.py",
    "rw-register": "transactions/rw_register.py",
    "bank": "data/bank.py",
    "counter": "data/counter.py",
    "set": "data/sets.py",
    "set-full": "data/sets.py",
    "long-fork": "data/long_fork.py",
}
"""Bench to the file whose classes it is to show."""
ENTRY_OF: Mapping[str, str] = {"set": "check_set", "set-full": "check_set_full"}
"""Where a file holds two checkers."""


def classes_in(path: Path, function: str | None = None) -> set[str]:
    """Every class of anomaly that a file names: the first argument of each `Anomaly(...)`."""
    tree: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    if function is not None:
        named = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        tree = next(node for node in named if node.name == function)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    made = (c.args[0] for c in calls if isinstance(c.func, ast.Name) and c.func.id == "Anomaly")
    return {str(name.value) for name in made if isinstance(name, ast.Constant)}


@pytest.mark.parametrize("bench", CLASSES_OF)
def test_each_class_that_a_checker_of_data_names_has_a_mutant(bench: str) -> None:
    path = Path(checkers.__file__).parent / CLASSES_OF[bench]
    named = classes_in(path, ENTRY_OF.get(bench))
    assert named
    assert classes_with_a_mutant(bench) >= named


def test_each_class_of_the_kafka_suite_has_a_mutant() -> None:
    claimed = frozenset().union(*LEVELS.values())
    assert classes_with_a_mutant("kafka") >= claimed | UNCLAIMED
    named = set().union(*map(classes_in, (Path(checkers.__file__).parent / "kafka").glob("*.py")))
    assert named - claimed - UNCLAIMED <= {"undecided", "too-weak"}, "a class without a level"
    assert classes_with_a_mutant("list-append") >= ALWAYS | DATA_CYCLES


def test_each_data_model_of_the_judge_has_its_bench() -> None:
    assert set(CHECKERS) - {"Kafka"} == set(CLASSES_OF)


def test_each_story_is_told_to_the_end() -> None:
    assert set(REPORTS) <= set(STORIES)


def test_unreadable_file_ends_with_status_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"type": "invoke", "process": 0, "f": "read", "value": null}\n{"oops\n')
    assert main(["check", str(path)]) == 2
    assert "line 2" in capsys.readouterr().err


def test_bad_history_ends_with_status_one_and_the_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.edn"
    path.write_text(
        "{:process 0, :type :invoke, :f :read, :value nil}\n"
        "{:process 0, :type :ok, :f :read, :value 5}\n"
    )
    page_path = tmp_path / "report.html"
    assert main(["check", str(path), "--report", str(page_path)]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("check: files=1 wrong=1 seconds=")
    assert page_path.exists()


needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no recorded histories")


@needs_data
def test_all_recorded_histories_get_their_verdict() -> None:
    checked = list(check_manifest(DATA))
    assert [(entry.file, entry.quarrel) for entry in checked if entry.quarrel] == []
    assert len(checked) > 400


@needs_data
def test_names_of_files_and_processes_decide_nothing(tmp_path: Path) -> None:
    """A sample of the folder with files renamed and processes renumbered: no verdict changes."""
    manifest = json.loads((DATA / "manifest.json").read_text())
    entries = [e for e in manifest["entries"] if e["source"] == "kafka-mini"]
    for number, entry in enumerate(entries):
        renamed = f"h{number:03}.txt"
        lines = (DATA / entry["file"]).read_text().splitlines()
        events = [json.loads(line) for line in lines]
        for event in events:
            event["process"] = 1000 - event["process"]
        (tmp_path / renamed).write_text("".join(json.dumps(e) + "\n" for e in events))
        entry["file"] = renamed
    (tmp_path / "manifest.json").write_text(json.dumps({"entries": entries}))
    checked = list(check_manifest(tmp_path))
    assert [(entry.file, entry.quarrel) for entry in checked if entry.quarrel] == []
    shutil.rmtree(tmp_path)


def test_check_tells_its_status_while_the_history_is_still_there(tmp_path: Path) -> None:
    """Who ends the process at that moment need not give the memory back."""
    path = tmp_path / "run.log"
    path.write_text("[1] call push(a)\n[1] return\n[2] call pop\n[2] return b\n")
    told: list[int] = []

    def leave(status: int) -> int:
        told.append(status)
        return 7

    assert check([str(path), "--model", "stack"], leave=leave) == 7
    assert told == [1]
