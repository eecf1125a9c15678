"""What was tried: (kind of fault, role, phase of the cluster) -> strikes that hit somebody.

It gives "nothing was found" its denominator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from html import escape


class Phase(Enum):
    """What the cluster was about when a fault struck: one axis of the coverage."""

    WHOLE = "whole"
    CATCHING_UP = "catching up"
    LEADERLESS = "leaderless"


Cell = tuple[str, str, Phase]


class Coverage:
    def __init__(self, reachable: Iterable[tuple[str, str]]) -> None:
        """`reachable`: every kind and role that schedules for this executor may name."""
        self.reachable = sorted(set(reachable))
        self.cells: dict[Cell, int] = {}

    def add(self, kind: str, role: str, phase: Phase) -> None:
        cell = kind, role, phase
        self.cells[cell] = self.cells.get(cell, 0) + 1

    def add_all(self, cells: Mapping[Cell, int]) -> None:
        """Of another run."""
        for cell, strikes in cells.items():
            self.cells[cell] = self.cells.get(cell, 0) + strikes

    @property
    def strikes(self) -> int:
        return sum(self.cells.values())

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _, _ in self.cells}

    def rows(self) -> list[tuple[str, ...]]:
        """A head, then a row for each kind and role; a dot is an empty cell."""
        hit = {(kind, role) for kind, role, _ in self.cells}
        head = ("fault", "role", *(phase.value for phase in Phase))
        return [head] + [
            (kind, role, *(str(self.cells.get((kind, role, phase), ".")) for phase in Phase))
            for kind, role in sorted(hit | set(self.reachable))
        ]

    def summary(self) -> str:
        cells = len({(kind, role) for kind, role in self.reachable}) * len(Phase)
        hit = sum((kind, role) in set(self.reachable) for kind, role, _ in self.cells)
        return f"coverage: {hit} of {cells} cells (fault x role x phase)"

    def text(self) -> str:
        rows = self.rows()
        widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
        lines = [
            "  ".join(part.ljust(width) for part, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self.summary(), *lines])

    def html(self) -> str:
        head, *rows = self.rows()
        made = ["".join(f"<th>{escape(part)}</th>" for part in head)]
        made += ["".join(f"<td>{escape(part)}</td>" for part in row) for row in rows]
        table = "".join(f"<tr>{row}</tr>" for row in made)
        return f"<h2>Faults tried</h2><p>{escape(self.summary())}</p><table>{table}</table>"
