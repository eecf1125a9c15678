"""How fast the simulation of a cluster of three is, on one core.

    python benchmarks/simulation.py [--rounds 3] [--seeds 60] [--write]

Seconds are processor time; a seed is a whole run of scope `cluster`, faults and judgement with it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter, process_time

from figures import Figure, machine, table, tell

from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.schedule import Consumers, Producers, Schedule, Topic, generate
from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.cluster import Cluster

TITLE = "Simulation"
IDLE_S = 60.0
WORK_MS = 30_000
CORES = 2
HUNDRED = 100


def idle() -> float:
    """Simulated seconds for one real second: three nodes with an empty topic, nobody asks."""
    with World(1) as world:
        cluster = Cluster(world)
        cluster.start()
        cluster.run(lambda client: client.create_topic("orders", partitions=2))
        world.run(2.0)
        began = process_time()
        world.run(IDLE_S)
        return IDLE_S / (process_time() - began)


def standard() -> float:
    """The same under the workload that schedules from seeds have most often, without faults."""
    configs = {"min.insync.replicas": "2"}
    schedule = Schedule(
        seed=1,
        nodes=3,
        topics=(Topic("orders", 2, 3, configs),),
        producers=tuple(
            Producers("orders", idempotent=idempotent, batch_records=4, interval_ms=150)
            for idempotent in (True, False)
        ),
        consumers=(Consumers("orders"),),
        faults=(),
        hurt_ms=WORK_MS,
    )
    began = process_time()
    result = run_schedule(schedule)
    assert not result.violations
    return result.simulated_s / (process_time() - began)


def of_seed(seed: int) -> float:
    """Seconds for one run from its start to its verdict."""
    began = process_time()
    result = run_schedule(generate(seed))
    assert result.good, (seed, result.violations, result.stuck)
    return process_time() - began


def measure(figure: Figure, once: Callable[[], float], rounds: int) -> Figure:
    figure.values += [once() for _ in range(rounds)]
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--write", action="store_true", help="keep the figures in docs/NUMBERS.md")
    options = parser.parse_args()
    figures = [
        measure(Figure("idle", "simulated s / s", "20"), idle, options.rounds),
        measure(Figure("standard workload", "simulated s / s", "5"), standard, options.rounds),
    ]
    seeds = Figure("one seed with faults and verdict", "s", "-")
    began = perf_counter()
    with ProcessPoolExecutor(CORES) as pool:
        seeds.values += pool.map(of_seed, range(1, 1 + options.seeds))
    minutes = (perf_counter() - began) / options.seeds * HUNDRED / 60
    name = f"{HUNDRED} seeds on {CORES} cores, from {options.seeds}"
    hundred = Figure(name, "min of the clock", "10", [minutes])
    head = f"Machine: {machine()}. `benchmarks/simulation.py`, three nodes, processor time.\n\n"
    tell(TITLE, head + table([*figures, seeds, hundred]), write=options.write)


if __name__ == "__main__":
    main()
