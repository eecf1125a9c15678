"""Figures from several rounds, and the page that keeps them."""

from __future__ import annotations

import os
import platform
import statistics
from dataclasses import dataclass, field
from pathlib import Path

NUMBERS = Path(__file__).resolve().parents[1] / "docs" / "NUMBERS.md"


@dataclass
class Figure:
    """One measured quantity. `bar` is what it must reach, in words."""

    name: str
    unit: str
    bar: str
    values: list[float] = field(default_factory=list)

    def row(self) -> str:
        low, high = min(self.values), max(self.values)
        middle = statistics.median(self.values)
        spread = f"{_plain(low)} - {_plain(high)}"
        count = len(self.values)
        return f"| {self.name} | {_plain(middle)} {self.unit} | {spread} | {count} | {self.bar} |"


def table(figures: list[Figure]) -> str:
    head = "| figure | median | lowest - highest | rounds | bar |\n|---|--:|--:|--:|---|\n"
    return head + "\n".join(figure.row() for figure in figures if figure.values) + "\n"


def machine() -> str:
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return (
        f"{os.cpu_count()} cores of {cpu}, {memory_kib >> 20} GiB, "
        f"Linux {platform.release()}, Python {platform.python_version()}"
    )


def tell(title: str, text: str, *, write: bool) -> None:
    """Print the section, and keep it in docs/NUMBERS.md if it counts."""
    print(text)
    if write:
        write_section(title, text)


def write_section(title: str, text: str) -> None:
    """Replace the section `title` of docs/NUMBERS.md, or add it."""
    page = NUMBERS.read_text() if NUMBERS.exists() else "# Numbers\n"
    head, *sections = page.split("\n## ")
    kept = [s for s in sections if s.partition("\n")[0] != title]
    kept.append(f"{title}\n\n{text.rstrip()}\n")
    NUMBERS.write_text("\n## ".join([head.rstrip() + "\n", *kept]))


def _plain(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
