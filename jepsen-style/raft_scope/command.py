"""`simulate --scope raft --seeds A:B`: many seeds, spread over processes, and one last line."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from .controls import BY_NUMBER
from .run import Plan, Result, run_seed

SHOWN_CHARACTERS = 200
"""Of the first violation of each kind."""

_KIND = re.compile(r"([a-z]+): ")


def simulate(arguments: Sequence[str]) -> int:
    """Run the seeds; status 1 when one of them shows a violation or is stuck."""
    options = _parser().parse_args(arguments)
    plan = Plan(
        nodes=options.nodes,
        bare=options.bare,
        without=options.without,
        compaction=options.compaction,
    )
    results = []
    for result in _results(options.seeds, plan, options.jobs):
        results.append(result)
        if not result.good:
            _print_failure(result, plan)
    violations = sum(1 for result in results if result.violations)
    stuck = sum(1 for result in results if result.stuck)
    acknowledged = sum(result.acknowledged for result in results)
    faults = sum(result.faults for result in results)
    simulated_s = sum(result.simulated_s for result in results)
    print(
        f"simulate: raft seeds={len(results)} violations={violations} stuck={stuck} "
        f"acknowledged={acknowledged} faults={faults} simulated_s={simulated_s:.0f}"
    )
    return 1 if violations or stuck else 0


def _results(seeds: range, plan: Plan, jobs: int) -> Iterator[Result]:
    if jobs == 1 or len(seeds) == 1:
        yield from (run_seed(seed, plan) for seed in seeds)
        return
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(partial(run_seed, plan=plan), seeds)


def _print_failure(result: Result, plan: Plan) -> None:
    by_kind: dict[str, list[str]] = {}
    for text in [*result.violations, *result.stuck]:
        match = _KIND.match(text)
        by_kind.setdefault(match[1] if match else "state", []).append(text)
    told = ", ".join(f"{len(texts)} {kind}" for kind, texts in sorted(by_kind.items()))
    print(f"seed {result.seed}: {told}")
    for _, texts in sorted(by_kind.items()):
        print(f"  {texts[0][:SHOWN_CHARACTERS]}")
    print(
        f"  replay: python -m logboat.jepsen_style simulate --scope raft "
        f"--seeds {result.seed}:{result.seed + 1} {plan.arguments()}",
        flush=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--scope", choices=["raft"], required=True)
    parser.add_argument("--seeds", type=_seeds, required=True, metavar="A:B", help="half open")
    parser.add_argument("--nodes", type=int, choices=[3, 5], default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--compaction", type=int, metavar="N", help="snapshot every N entries")
    control = parser.add_mutually_exclusive_group()
    control.add_argument("--bare", action="store_true", help="control: the engine without guards")
    control.add_argument("--without", choices=list(BY_NUMBER), help="control: all guards but one")
    return parser


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    seeds = range(int(first), int(last))
    if not seeds:
        raise argparse.ArgumentTypeError(f"no seeds in {text!r}")
    return seeds
