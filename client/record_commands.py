"""`logboat produce`: lines to a topic; `logboat consume`: topics to standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, Url

if TYPE_CHECKING:
    from .line_format import LineFormat

Format = Annotated[
    str | None,
    typer.Option("-f", "--format", help="json, or %k %v %h %t %p %o %d, such as '%k: %v\\n'."),
]


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILES]", help="Read instead of standard input.")
    ] = None,
    key: Annotated[str | None, typer.Option("-k", "--key", help="Of every record.")] = None,
    key_separator: Annotated[
        str | None, typer.Option("-K", "--key-separator", help="Splits a line into key and value.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("-f", "--format", help="Of a line: %k %v %p, such as '%k: %v\\n'."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="NAME=VALUE", help="Of every record; repeatable."),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("-p", "--partition", min=0, help="Write to this one; else the key decides."),
    ] = None,
    tombstone: Annotated[
        bool, typer.Option("-Z", "--tombstone", help="An empty value is a null one.")
    ] = False,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Lines as `consume -f json` prints them.")
    ] = False,
    acks: Annotated[str, typer.Option("--acks", help="all or 1.")] = "all",
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, help="Records a second at most.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.01, help="Seconds in which a record is decided.")
    ] = 30.0,
    dead_letter: Annotated[
        str | None,
        typer.Option("--dead-letter", metavar="FILE", help="Lines that were not written go there."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Write each line as a record.

    Status 1 when one of them was not written."""
    from .produce_lines import LineShape, ProduceOptions, produce_lines

    if acks not in ("all", "1"):
        raise Failure("--acks takes all or 1", ExitStatus.USAGE)
    if json_lines and (key is not None or key_separator is not None):
        raise Failure("--json lines bring their keys", ExitStatus.USAGE)
    line_format = None
    if format_ is not None:
        if json_lines or key_separator is not None:
            raise Failure(
                "-f says all of a line: neither -K nor --json go with it", ExitStatus.USAGE
            )
        line_format = _line_format(format_, key=key, partition=partition)
    shape = LineShape(
        key=key,
        key_separator=key_separator,
        headers=tuple(_header(text) for text in header or ()),
        partition=partition,
        empty_is_null=tombstone,
        is_json=json_lines,
        format=line_format,
    )
    status = produce_lines(
        ProduceOptions(
            topic, tuple(files or ()), shape, acks, rate, timeout, dead_letter, quiet, url
        )
    )
    raise typer.Exit(int(status))


def consume(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...")],
    offset: Annotated[
        str,
        typer.Option(
            "-o",
            "--offset",
            help="start, end, a number, +N after the start, -N before the end, @TIME: Unix "
            "milliseconds, an ISO date, or @-5m.",
        ),
    ] = "start",
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", min=0, help="Only this one.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("-g", "--group", help="As a member of it; offsets are committed."),
    ] = None,
    count: Annotated[int | None, typer.Option("-n", "--count", min=1, help="Then stop.")] = None,
    exit_at_end: Annotated[bool, typer.Option("-e", "--exit", help="Stop at the end.")] = False,
    format_: Format = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as -f json.")] = False,
    meta_only: Annotated[
        bool, typer.Option("--meta-only", help="Where records stand, without key and value.")
    ] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Print records as they come, until Ctrl-C.

    With -e, print what there is now. Without a group no offsets are remembered."""
    from .read_from import Place, ReadFrom
    from .record_format import JSON_FORMAT, RecordFormat
    from .record_printer import RecordPrinter

    text = JSON_FORMAT if as_json else format_
    if meta_only and text not in (None, JSON_FORMAT):
        raise Failure("--meta-only goes with -f json only", ExitStatus.USAGE)
    if text is None:
        text = "%t\\t%p\\t%o\\t%d\\n" if meta_only else "%v\\n"
    printer = RecordPrinter(RecordFormat(text, meta_only=meta_only), count=count)
    begin = ReadFrom.parse(offset)
    if group is not None:
        from .consume_group import consume_as_member

        if exit_at_end or partition is not None or begin.place not in (Place.START, Place.END):
            raise Failure(
                "a group knows where it is: -e, -p and -o do not go with -g", ExitStatus.USAGE
            )
        start: Literal["earliest", "latest"]
        start = "earliest" if begin.place is Place.START else "latest"
        consume_as_member(topics, group, printer, start=start, url=url)
        return
    from .consume_records import Reading, consume_records

    consume_records(Reading(tuple(topics), begin, partition, exit_at_end, url), printer)


def _line_format(text: str, *, key: str | None, partition: int | None) -> LineFormat:
    """`key` and `partition`: what was given for all lines."""
    from .line_format import LineFormat

    line_format = LineFormat.parse(text)
    for letter, option, given in (("k", "-k", key), ("p", "-p", partition)):
        if given is not None and letter in line_format:
            raise Failure(f"%{letter} in -f and {option} say the same thing", ExitStatus.USAGE)
    return line_format


def _header(text: str) -> tuple[str, bytes]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise Failure(f"{text!r} is not NAME=VALUE", ExitStatus.USAGE)
    return name, value.encode("utf-8", "surrogateescape")
