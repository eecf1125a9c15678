"""The report's picture of the cluster: a lane a partition, as a browser shows it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from logboat.jepsen_style.checkers.kafka import report_on
from logboat.jepsen_style.history import History
from logboat.jepsen_style.mutants.kafka_stories import Story
from logboat.jepsen_style.report.page import page
from logboat.jepsen_style.report.partitions import partitions


def observed_history() -> History:
    """x: led by 1, by nobody, by 2; its ISR shrinks from three to one; its watermark rises."""
    story = Story(Random(2))
    story.see("leader", key="x", epoch=1, leader=1)
    story.see("isr", key="x", epoch=1, isr=[1, 2, 3])
    story.see("leader", key="y", epoch=7, leader=3)
    story.see("high-watermark", key="x", node=1, incarnation=1, high_watermark=0)
    story.send(0, 1, 0)
    story.see("high-watermark", key="x", node=1, incarnation=1, high_watermark=1)
    story.see("leader", key="x", epoch=2, leader=None)
    story.see("isr", key="x", epoch=2, isr=[2], elr=[3])
    story.poll(5, (0, 1))
    story.see("leader", key="x", epoch=3, leader=2)
    story.see("truncate", key="x", node=3, to=1, in_sync=False)
    story.see("high-watermark", key="x", node=2, incarnation=1, high_watermark=4)
    return story.history


def lane(drawn: str, key: str) -> ElementTree.Element:
    found = [
        group
        for group in ElementTree.fromstring(drawn).iter()
        if group.get("class") == "partition" and group.get("data-key") == key
    ]
    assert len(found) == 1
    return found[0]


def titles(lane: ElementTree.Element, kind: str) -> list[str]:
    return [
        "".join(child.text or "" for child in group if child.tag.endswith("title"))
        for group in lane.iter()
        if group.get("class") == kind
    ]


def rectangles(lane: ElementTree.Element, kind: str) -> list[tuple[float, float, float]]:
    """(left, right, height)."""
    return [
        (
            float(r.get("x", "")),
            float(r.get("x", "")) + float(r.get("width", "")),
            float(r.get("height", "")),
        )
        for group in lane.iter()
        if group.get("class") == kind
        for r in group
        if r.tag.endswith("rect")
    ]


def test_each_partition_has_a_lane_of_its_own() -> None:
    drawn = partitions(observed_history())
    assert titles(lane(drawn, "y"), "leadership") == ["leader 3, epoch 7"]
    assert titles(lane(drawn, "y"), "isr") == []


def test_leaderships_are_bars_that_follow_each_other_with_a_gap_where_nobody_led() -> None:
    x = lane(partitions(observed_history()), "x")
    assert titles(x, "leadership") == ["leader 1, epoch 1", "leader 2, epoch 3"]
    assert titles(x, "leaderless") == ["no leader, epoch 2"]
    (_, first_ends, _), (second_begins, _, _) = rectangles(x, "leadership")
    [(gap_begins, gap_ends, _)] = rectangles(x, "leaderless")
    assert first_ends == pytest.approx(gap_begins, abs=0.2)
    assert gap_ends == pytest.approx(second_begins, abs=0.2)
    assert gap_begins < gap_ends


def test_isr_is_a_bar_as_high_as_the_isr_is_large() -> None:
    x = lane(partitions(observed_history()), "x")
    assert titles(x, "isr") == ["ISR 1, 2, 3", "ISR 2; ELR 3"]
    (_, _, whole), (_, _, one) = rectangles(x, "isr")
    assert one == pytest.approx(whole / 3, abs=0.1)


def test_high_watermark_is_a_line_of_steps_upwards_with_truncations_on_it() -> None:
    x = lane(partitions(observed_history()), "x")
    assert titles(x, "high-watermark") == ["high watermark 0 to 4"]
    assert titles(x, "event") == ["node 3 truncates to 1"]
    [line] = [element for element in x.iter() if element.tag.endswith("polyline")]
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    assert len(points) == 6
    assert points == sorted(points, key=lambda point: (point[0], -point[1]))


def test_names_of_partitions_are_escaped() -> None:
    story = Story(Random(1))
    story.see("leader", key='<b>"', epoch=1, leader=1)
    drawn = partitions(story.history)
    assert "<b>" not in drawn
    assert lane(drawn, '<b>"') is not None


@pytest.mark.foreign
def test_partitions_are_drawn_in_chromium(tmp_path: Path, tool: Callable[[str], str]) -> None:
    history = observed_history()
    report = report_on(history)
    path = tmp_path / "report.html"
    drawn = page(history, report.verdict, title="cluster", kafka=report)
    # The browser itself measures what it drew: boxes of size zero would be no picture.
    measured = (
        "<script>for (const group of document.querySelectorAll('.partition g')) {"
        "const box = group.getBBox();"
        "group.setAttribute('data-box', box.width.toFixed() + ' ' + box.height.toFixed()) }"
        "</script></body>"
    )
    path.write_text(drawn.replace("</body>", measured))
    command = [
        *(tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-sync"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *(f"--user-data-dir={tmp_path}/profile", "--dump-dom", path.as_uri()),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown.count('class="partition"') == 2
    for kind, count in (("leadership", 3), ("leaderless", 1), ("isr", 2), ("high-watermark", 1)):
        boxes = re.findall(rf'<g class="{kind}" data-box="(\d+) (\d+)"', shown)
        assert len(boxes) == count
        assert all(int(width) > 0 and int(height) > 0 for width, height in boxes)
