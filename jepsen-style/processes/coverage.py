"""The coverage of every executor, under the name by which this one has it."""

from __future__ import annotations

from ..schedule.coverage import Cell, Coverage, Phase

__all__ = ["Cell", "Coverage", "Phase"]
