"""`logboat bench ...`: how fast is this cluster; `logboat verify`: does it keep its word?"""

from __future__ import annotations

from typing import Annotated

import typer

from .node_api import DEFAULT_URL, Url
from .terminal import As, Output

bench = typer.Typer(
    name="bench",
    help="Measure: produce, consume, e2e.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Topic = Annotated[
    str | None,
    typer.Option("--topic", help="Use this one; else one is made, and removed afterwards."),
]
Count = Annotated[int, typer.Option("-n", "--count", min=1, help="Records.")]
Size = Annotated[int, typer.Option("-s", "--size", min=1, help="Bytes of a value.")]


@bench.command()
def produce(
    count: Count = 100_000,
    size: Size = 100,
    topic: Topic = None,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Write records as fast as they are taken, acks=all."""
    from .benchmarking import Bench

    Bench(url, topic, count, size).run("produce", output)


@bench.command()
def consume(
    count: Count = 100_000,
    size: Size = 100,
    topic: Topic = None,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Read records as fast as they come.

    Without --topic, those of a topic that is made and filled first."""
    from .benchmarking import Bench

    Bench(url, topic, count, size).run("consume", output)


@bench.command()
def e2e(
    count: Count = 500,
    size: Size = 100,
    topic: Topic = None,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """One record at a time: from sending it to reading it."""
    from .benchmarking import Bench

    Bench(url, topic, count, size).run("e2e", output)


def verify(
    count: Count = 10_000,
    size: Size = 100,
    topic: Topic = None,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Write records, read them back, and compare.

    Status 1 if one was lost, doubled or out of order. Hurt the cluster meanwhile as you like."""
    from .verifying import verify_cluster

    raise typer.Exit(int(verify_cluster(url, topic, count, size, output)))
