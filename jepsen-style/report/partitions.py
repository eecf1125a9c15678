"""The drawing of the cluster: for each partition who led it, its ISR and its high watermark.

Three rows a partition, over the places of the history:

* **leader**: a bar for each stretch with one leader and epoch, and a gap where nobody led;
* **ISR**: a bar for each stretch with one ISR, as high as the ISR is large, ELR named in its text;
* **high watermark**: a line of steps, the highest that any replica told so far; a replica that
  cut its log off shows as a tick on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from ..history import History
from .timeline import LANE_HEIGHT, MOST_OPERATIONS, Scale, label, svg

Seen = tuple[int, Mapping[str, Any]]
"""(place, value of the observation)."""
ROWS = ("leader", "isr", "high-watermark")
WATERMARK_HEIGHT = 2 * LANE_HEIGHT
PARTITION_HEIGHT = 2 * LANE_HEIGHT + WATERMARK_HEIGHT + 6
CHARACTER_WIDTH = 6.5
MOST_PARTITIONS = 64
"""More than that is no picture; the rest is said to be left out."""


def partitions(history: History) -> str:
    """A lane for each partition that was observed, in the order of their names."""
    seen: dict[str, dict[str, list[Seen]]] = {}
    for place, event in history.observations:
        function, value = str(event.get("f")), event.get("value")
        if function in (*ROWS, "truncate") and isinstance(value, Mapping) and "key" in value:
            lane = seen.setdefault(str(value["key"]), {})
            lane.setdefault(function, []).append((place, value))
    if not seen:
        return "<p>Nothing was observed.</p>"
    scale = Scale(0, max(history.events, 1))
    shown = sorted(seen)[:MOST_PARTITIONS]
    parts = [
        part
        for number, key in enumerate(shown)
        for part in partition(key, seen[key], number * PARTITION_HEIGHT, scale)
    ]
    left_out = len(seen) - len(shown)
    rest = f"<p>and {left_out} more partitions</p>" if left_out else ""
    return svg(len(shown) * PARTITION_HEIGHT, parts) + rest


def partition(
    key: str, seen: Mapping[str, Sequence[Seen]], top: int, scale: Scale
) -> Iterator[str]:
    yield f'<g class="partition" data-key="{escape(key)}">'
    yield label(top, key)
    yield from leadership(seen.get("leader", ()), top, scale)
    yield from in_sync(seen.get("isr", ()), top + LANE_HEIGHT, scale)
    marks, cuts = seen.get("high-watermark", ()), seen.get("truncate", ())
    yield from watermark(marks, cuts, top + 2 * LANE_HEIGHT, scale)
    yield "</g>"


def stretches(
    seen: Sequence[Seen], scale: Scale
) -> Iterator[tuple[float, float, Mapping[str, Any]]]:
    """(left, right, value): each is in force until the next one, and the last to the end."""
    kept = seen[:MOST_OPERATIONS]
    places = [scale.x(place) for place, _ in kept] + [scale.x(scale.last)]
    for (left, right), (_, value) in zip(pairwise(places), kept, strict=True):
        yield left, right, value


def leadership(seen: Sequence[Seen], top: int, scale: Scale) -> Iterator[str]:
    for left, right, value in stretches(seen, scale):
        node, epoch = value.get("leader"), value.get("epoch")
        if node is None:
            yield bar(
                "leaderless", left, right, top, LANE_HEIGHT - 6, f"no leader, epoch {epoch}", ""
            )
        else:
            text = f"leader {node}, epoch {epoch}"
            yield bar("leadership", left, right, top, LANE_HEIGHT - 6, text, text)


def in_sync(seen: Sequence[Seen], top: int, scale: Scale) -> Iterator[str]:
    largest = max((len(value.get("isr") or ()) for _, value in seen), default=0)
    for left, right, value in stretches(seen, scale):
        isr, elr = value.get("isr") or (), value.get("elr") or ()
        text = f"ISR {', '.join(map(str, isr)) or 'empty'}"
        more = f"{text}; ELR {', '.join(map(str, elr))}" if elr else text
        height = (LANE_HEIGHT - 6) * len(isr) / max(largest, 1)
        low = top + LANE_HEIGHT - 6 - height
        yield bar("isr", left, right, low, height, more, f"{len(isr)} in sync")


def bar(
    kind: str, left: float, right: float, top: float, height: float, title: str, text: str
) -> str:
    width = max(right - left, 1)
    body = (
        f'<g class="{kind}"><title>{escape(title)}</title><rect x="{left:.1f}" '
        f'y="{top + 3:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )
    if len(text) * CHARACTER_WIDTH < width:
        body += f'<text x="{left + 3:.1f}" y="{top + max(height, 12):.1f}">{escape(text)}</text>'
    return body + "</g>"


def watermark(marks: Sequence[Seen], cuts: Sequence[Seen], top: int, scale: Scale) -> Iterator[str]:
    """A line from the lowest mark at the bottom to the highest at the top."""
    bottom = top + WATERMARK_HEIGHT - 4
    values = [int(value["high_watermark"]) for _, value in marks[:MOST_OPERATIONS]]
    if values:
        least, span = min(values), max(max(values) - min(values), 1)
        points: list[str] = []
        highest = values[0]
        for (place, _), mark in zip(marks, values, strict=False):
            x, before = scale.x(place), highest
            highest = max(highest, mark)
            for level in dict.fromkeys((before, highest)):
                y = bottom - (level - least) / span * (WATERMARK_HEIGHT - 8)
                points.append(f"{x:.1f},{y:.1f}")
        points.append(f"{scale.x(scale.last):.1f},{points[-1].partition(',')[2]}")
        title = f"high watermark {values[0]} to {highest}"
        yield (
            f'<g class="high-watermark"><title>{escape(title)}</title>'
            f'<polyline points="{" ".join(points)}"/></g>'
        )
    for place, value in cuts[:MOST_OPERATIONS]:
        x, title = scale.x(place), f"node {value.get('node')} truncates to {value.get('to')}"
        yield (
            f'<g class="event"><title>{escape(title)}</title>'
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + 2}" y2="{bottom}"/></g>'
        )
