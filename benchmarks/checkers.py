"""How fast the checkers are, on one core: `python benchmarks/checkers.py [--histories DIR]`.

Everything but the recorded histories is made here, from a fixed seed. Times are processor time of
this process; memory is its peak so far. `--write` puts the table into docs/NUMBERS.md.
"""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import perf_counter, process_time

import orjson
from figures import machine, tell

from logboat.jepsen_style.checkers import Status
from logboat.jepsen_style.checkers.kafka import report_on
from logboat.jepsen_style.checkers.linearizability import check_linearizable, model_named
from logboat.jepsen_style.checkers.polynomial import (
    LogHistory,
    check_log,
    check_register_columns,
)
from logboat.jepsen_style.history import History, read_history
from logboat.jepsen_style.manifest import check_manifest

MILLION = 1_000_000
CLIENTS = 50


def intervals(random: Random, operations: int, clients: int) -> tuple[list[int], list[int]]:
    """Invocation and completion places; operation n takes effect between the two, in order of n."""
    invoked, completed = array("q", [0]) * operations, array("q", [0]) * operations
    # Each operation overlaps up to `clients` neighbours: its ends are jittered around 3n.
    for number in range(operations):
        invoked[number] = 3 * number - random.randrange(clients)
        completed[number] = 3 * number + 1 + random.randrange(clients)
    # Ends that fall together are told apart, so that places are those of single events.
    return (
        [place * 4 * clients + number % clients for number, place in enumerate(invoked)],
        [
            place * 4 * clients + clients + number % clients
            for number, place in enumerate(completed)
        ],
    )


def log_history(operations: int) -> LogHistory:
    """40 % appends, 40 % reads, 20 % reads of the end."""
    random = Random(1)
    invoked, completed = intervals(random, operations, CLIENTS)
    log, end = LogHistory(), 0
    for number in range(operations):
        choice = random.random()
        times = (invoked[number], completed[number], number)
        if choice < 0.4 or not end:
            log.appends.add(end, end, *times)
            end += 1
        elif choice < 0.8:
            offset = end - 1 - random.randrange(min(end, 100))
            log.reads.add(offset, offset, *times)
        else:
            log.ends.add(end, None, *times)
    return log


def register_history(
    operations: int,
) -> tuple[list[int], list[int], list[int], list[int]]:
    random = Random(2)
    invoked, completed = intervals(random, operations, CLIENTS)
    values: list[int] = []
    writes: list[int] = []
    value = 0
    for number in range(operations):
        if number == 0 or random.random() < 0.4:
            value = len(writes)
            writes.append(number)
        values.append(value)
    return values, invoked, completed, writes


def write_kafka_lines(path: Path, operations: int) -> None:
    """Half sends, half polls of a few records, on 16 keys; 50 clients at a time."""
    random = Random(3)
    records: dict[str, list[int]] = {}
    keys = [f"topic-{number}" for number in range(16)]
    ends = dict.fromkeys(keys, 0)
    positions: dict[tuple[int, str], int] = {}
    place = 0

    def line(process: int, kind: str, function: str, value: object) -> bytes:
        nonlocal place
        event = {
            "index": place,
            "time": place * 1000,
            "process": process,
            "type": kind,
            "f": function,
            "value": value,
        }
        place += 1
        return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)

    with path.open("wb") as output:
        open_answers: dict[int, tuple[str, object]] = {}
        left, value = operations, 0
        while left or open_answers:
            client = random.randrange(CLIENTS)
            if client in open_answers:
                function, answer = open_answers.pop(client)
                output.write(line(client, "ok", function, answer))
                continue
            if not left:
                client = next(iter(open_answers))
                function, answer = open_answers.pop(client)
                output.write(line(client, "ok", function, answer))
                continue
            left -= 1
            if client % 2:
                key, value = random.choice(keys), value + 1
                output.write(line(client, "invoke", "send", [["send", key, value]]))
                records.setdefault(key, []).append(value)
                open_answers[client] = ("send", [["send", key, [ends[key], value]]])
                ends[key] += 1
            else:
                key = keys[(client // 2) % len(keys)]
                start = positions.get((client, key), 0)
                end = min(start + 8, ends[key])
                positions[client, key] = end
                found = [[offset, records[key][offset]] for offset in range(start, end)]
                output.write(line(client, "invoke", "poll", [["poll"]]))
                open_answers[client] = ("poll", [["poll", {key: found}]])
        for number, key in enumerate(keys):
            found = [[offset, record] for offset, record in enumerate(records.get(key, []))]
            output.write(line(100 + number, "invoke", "poll", [["poll"]]))
            output.write(line(100 + number, "ok", "poll", [["poll", {key: found}]]))


def timed(name: str, bar: str, work: Callable[[], object]) -> str:
    """The row of the table."""
    gc.collect()
    gc.disable()
    wall, cpu = perf_counter(), process_time()
    said = work()
    wall, cpu = perf_counter() - wall, process_time() - cpu
    gc.enable()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {cpu:.2f} s", file=sys.stderr, flush=True)
    return f"| {name} | {cpu:.2f} s | {wall:.2f} s | {peak:.0f} MiB | {bar} | {said} |"


def search_all(histories: Sequence[History], model: str) -> str:
    counts = {status: 0 for status in Status}
    for history in histories:
        verdict = check_linearizable(history, model_named(model), minimise=False)
        counts[verdict.status] += 1
    return ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)


def recorded(name: str, bar: str, paths: Sequence[Path], model: str) -> list[str]:
    histories: list[History] = []

    def read() -> str:
        histories.extend(map(read_history, paths))
        return f"{sum(map(len, histories))} operations"

    return [
        timed(f"{name}, reading", "-", read),
        timed(name, bar, lambda: search_all(histories, model)),
    ]


def polynomial(operations: int) -> list[str]:
    log = log_history(operations)
    register = register_history(operations)
    return [
        timed("log", "0.6 s", lambda: check_log(log).status.value),
        timed("register", "0.6 s", lambda: check_register_columns(*register).status.value),
    ]


def whole_folder(directory: Path) -> str:
    checked = list(check_manifest(directory))
    wrong = sum(one.quarrel is not None for one in checked)
    return f"{len(checked)} files, {wrong} wrong"


def kafka_file(path: Path, kept: list[History]) -> str:
    """`kept`: takes the history, so that giving its memory back is not part of the time; a command
    ends without."""
    history = read_history(path, "JSON lines")
    kept.append(history)
    report = report_on(history)
    return f"{len(history)} operations, {report.verdict.status.value}"


def kafka_command(path: Path) -> str:
    """The row of the same file given to the command, from its start to its end; its own memory."""
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    command = [sys.executable, "-m", "logboat.jepsen_style", "check", str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - wall
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    name, peak = "the same by `check FILE`", after.ru_maxrss / 1024
    print(f"{name}: {cpu:.2f} s", file=sys.stderr, flush=True)
    told = said.splitlines()[-1]
    return f"| {name} | {cpu:.2f} s | {wall:.2f} s | {peak:.0f} MiB | 15 s, 2 GB | {told} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=Path, default=Path("../shared/histories"))
    parser.add_argument("--operations", type=int, default=MILLION)
    parser.add_argument("--write", action="store_true", help="keep the table in docs/NUMBERS.md")
    options = parser.parse_args()
    rows: list[str] = []
    if options.histories.is_dir():
        etcd = "cas-register (initial value nil/absent; cas has ok/fail results)"
        for name, bar, pattern, model in (
            ("69 etcd logs", "0.7 s", "porcupine-etcd/*.log", etcd),
            ("kv c50-bad", "0.2 s", "porcupine-kv/c50-bad.txt", "key-value"),
            ("kv c50-ok", "1.1 s, 500 MB", "porcupine-kv/c50-ok.txt", "key-value"),
        ):
            rows += recorded(name, bar, sorted(options.histories.glob(pattern)), model)
        rows.append(
            timed("all recorded histories", "0 wrong", lambda: whole_folder(options.histories))
        )
    else:
        print(f"no recorded histories at {options.histories}", file=sys.stderr)
    rows += polynomial(options.operations)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.jsonl"
        write_kafka_lines(path, options.operations)
        kept: list[History] = []
        name = "Kafka suite from JSON lines"
        rows.append(timed(name, "15 s, 2 GB", lambda: kafka_file(path, kept)))
        rows.append(kafka_command(path))
    head = "| check | processor | wall | peak so far | bar | said |\n|---|--:|--:|--:|---|---|\n"
    said = f"{options.operations:,} operations each, where not recorded."
    text = f"{machine()}. One core; {said}\n\n{head}" + "\n".join(rows) + "\n"
    tell("Checkers", text, write=options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
