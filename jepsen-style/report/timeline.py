"""The drawing: one lane a client, bars for operations, and ticks for faults.

Plain SVG made here; the page needs no script to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..history import NEVER, History, Outcome

LANE_HEIGHT = 22
LABEL_WIDTH = 120
WIDTH = 1100
MOST_OPERATIONS = 2_000
"""More than that is no picture; the rest is said to be left out."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Places of the history to pixels."""

    first: int
    last: int

    def x(self, place: float) -> float:
        span = max(self.last - self.first, 1)
        return LABEL_WIDTH + (place - self.first) / span * (WIDTH - LABEL_WIDTH - 10)


def lanes(
    history: History,
    operations: Sequence[int],
    *,
    failing: frozenset[int],
    points: Mapping[int, int],
) -> str:
    """The lanes of the clients that run `operations`. `points`: linearization points."""
    if not operations:
        return "<p>No operation.</p>"
    shown = list(operations)[:MOST_OPERATIONS]
    ends = [history.completed[i] for i in shown if history.completed[i] != NEVER]
    scale = Scale(
        min(history.invoked[i] for i in shown),
        max([*ends, *(history.invoked[i] for i in shown)]) + 1,
    )
    processes = list(dict.fromkeys(sorted((history.process[i] for i in shown), key=str)))
    row = {process: number for number, process in enumerate(processes)}
    parts = [label(number * LANE_HEIGHT, f"process {process}") for process, number in row.items()]
    for index in shown:
        top = row[history.process[index]] * LANE_HEIGHT
        parts.append(bar(history, index, top, scale, failing, points))
    return svg(len(processes) * LANE_HEIGHT, parts)


def bar(
    history: History,
    index: int,
    top: int,
    scale: Scale,
    failing: frozenset[int],
    points: Mapping[int, int],
) -> str:
    operation = history[index]
    left = scale.x(operation.invoked)
    open_end = operation.completed == NEVER
    right = WIDTH if open_end else scale.x(operation.completed)
    kinds = [Outcome(operation.outcome).name.lower()]
    if index in failing:
        kinds.append("failing")
    width = max(right - left, 3)
    text = escape(f"{operation.function} {shown_value(operation.result or operation.argument)}")
    body = (
        f'<g class="op {" ".join(kinds)}"><title>{escape(str(operation))}</title>'
        f'<rect x="{left:.1f}" y="{top + 3}" width="{width:.1f}" height="{LANE_HEIGHT - 6}"/>'
    )
    if width > 40:
        fitting = text[: int(width / 6.5)]
        body += f'<text x="{left + 3:.1f}" y="{top + 15}">{fitting}</text>'
    if index in points:
        x = scale.x(points[index] + 0.5)
        body += f'<circle class="point" cx="{x:.1f}" cy="{top + LANE_HEIGHT / 2}" r="3"/>'
    return body + "</g>"


def shown_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def events(history: History, functions: Iterable[str]) -> str:
    """Observations on lanes of their own, a lane a sort, a tick each: faults."""
    wanted = list(functions)
    seen = [(p, e) for p, e in history.observations if e.get("f") in wanted]
    if not seen:
        return "<p>Nothing was observed.</p>"
    scale = Scale(0, max(history.events, 1))
    rows = {name: n for n, name in enumerate(dict.fromkeys(str(e.get("f")) for _, e in seen))}
    parts = [label(number * LANE_HEIGHT, name) for name, number in rows.items()]
    for place, event in seen[:MOST_OPERATIONS]:
        top = rows[str(event.get("f"))] * LANE_HEIGHT
        text = escape(f"{event.get('f')} {shown_value(event.get('value'))}")
        x = scale.x(place)
        parts.append(
            f'<g class="event"><title>{text}</title>'
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + 2}" y2="{top + LANE_HEIGHT - 2}"/></g>'
        )
    return svg(len(rows) * LANE_HEIGHT, parts)


def label(top: int, text: str) -> str:
    return f'<text class="lane" x="2" y="{top + 15}">{escape(text)}</text>'


def svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 4}" '
        f'width="{WIDTH}" height="{height + 4}" role="img">{"".join(parts)}</svg>'
    )
