"""`simulate --scope NAME --seeds A:B`: many seeds, spread over processes, and one last line."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from .cluster_scope.command import SCOPE as CLUSTER
from .raft_scope.command import SCOPE as RAFT
from .schedule import Coverage
from .simulation.scope import Scope, SeedPlan, SeedResult

SCOPES: Mapping[str, Scope] = {scope.name: scope for scope in (RAFT, CLUSTER)}

SHOWN_CHARACTERS = 200
"""Of the first violation of each kind."""

_KIND = re.compile(r"([a-z ]+): ")


def simulate(arguments: Sequence[str]) -> int:
    """Run the seeds; status 1 when one of them shows a violation or is stuck."""
    chosen, _ = _scope_parser(add_help=False).parse_known_args(arguments)
    scope = SCOPES[chosen.scope or RAFT.name]
    parser = _scope_parser(add_help=True)
    parser.add_argument("--seeds", type=_seeds, metavar="A:B", help="half open")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--matrix", action="store_true", help="print what was tried: fault x role x phase"
    )
    scope.add_options(parser)
    options = parser.parse_args(arguments)
    if options.scope is None:
        parser.error("--scope is required")
    plan = scope.plan(options)
    seeds = plan.seeds() or options.seeds
    if not seeds:
        parser.error("--seeds is required")
    results = []
    for result in _results(seeds, plan, options.jobs):
        results.append(result)
        if not result.good:
            _print_failure(scope, result, plan)
    if scope.reachable:
        print(_coverage(scope, results, matrix=options.matrix))
    print(_last_line(scope.name, results))
    return 0 if all(result.good for result in results) else 1


def _coverage(scope: Scope, results: Sequence[SeedResult], *, matrix: bool) -> str:
    coverage = Coverage(scope.reachable)
    for result in results:
        coverage.add_all(result.cells)
    return coverage.text() if matrix else coverage.summary()


def _last_line(scope: str, results: Sequence[SeedResult]) -> str:
    violations = sum(1 for result in results if result.violations)
    stuck = sum(1 for result in results if result.stuck)
    acknowledged = sum(result.acknowledged for result in results)
    faults = sum(result.faults for result in results)
    simulated_s = sum(result.simulated_s for result in results)
    return (
        f"simulate: {scope} seeds={len(results)} violations={violations} stuck={stuck} "
        f"acknowledged={acknowledged} faults={faults} simulated_s={simulated_s:.0f}"
    )


def _results(seeds: range, plan: SeedPlan, jobs: int) -> Iterator[SeedResult]:
    if jobs == 1 or len(seeds) == 1:
        yield from (plan.run(seed) for seed in seeds)
        return
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(plan.run, seeds)


def _print_failure(scope: Scope, result: SeedResult, plan: SeedPlan) -> None:
    by_kind: dict[str, list[str]] = {}
    for text in [*result.violations, *result.stuck]:
        match = _KIND.match(text)
        by_kind.setdefault(match[1] if match else "state", []).append(text)
    told = ", ".join(f"{len(texts)} {kind}" for kind, texts in sorted(by_kind.items()))
    print(f"seed {result.seed}: {told}")
    for _, texts in sorted(by_kind.items()):
        print(f"  {texts[0][:SHOWN_CHARACTERS]}")
    print(
        f"  replay: python -m logboat.jepsen_style simulate --scope {scope.name} "
        f"{plan.arguments(result.seed)}",
        flush=True,
    )


def _scope_parser(*, add_help: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__, add_help=add_help)
    parser.add_argument("--scope", choices=list(SCOPES))
    return parser


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    seeds = range(int(first), int(last))
    if not seeds:
        raise argparse.ArgumentTypeError(f"no seeds in {text!r}")
    return seeds
