"""A folder of histories with a manifest of what is expected of each: are our checkers right?

Every verdict is computed from the file and the manifest's description of it (`model`, `format`,
`property`, `settings`) before the expectation is looked at, and file names decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

from .checkers import Status, Verdict
from .checkers.verdict import unknown
from .history import HistoryError, read_history
from .judge import judge


@dataclass(frozen=True, slots=True)
class Description:
    """What a checker is told about a file."""

    file: str
    model: str
    format: str | None
    property: str | None
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the manifest says about the verdict; the first field that is there counts."""

    linearizable: bool | None
    valid: bool | None
    must_report: frozenset[str] | None
    must_not_report: frozenset[str]

    def quarrel(self, verdict: Verdict) -> str | None:
        """How the verdict differs; None when it does not. UNKNOWN is never right."""
        if verdict.status is Status.UNKNOWN:
            return f"no verdict: {verdict.reason}"
        expected = self.linearizable if self.linearizable is not None else self.valid
        if expected is not None:
            if (verdict.status is Status.VALID) == expected:
                return None
            wanted = "valid" if expected else "invalid"
            return f"expected {wanted}, got {verdict.status.value}: {verdict.reason}"
        if self.must_report is None:
            return "the manifest expects nothing of this file"
        missed = self.must_report - verdict.kinds
        extra = self.must_not_report & verdict.kinds
        if missed:
            return f"did not report {', '.join(sorted(missed))}"
        return f"reported {', '.join(sorted(extra))}" if extra else None


@dataclass(frozen=True, slots=True)
class Checked:
    file: str
    verdict: Verdict
    quarrel: str | None
    seconds: float


def check_manifest(directory: Path) -> Iterator[Checked]:
    """One result an entry, in the manifest's order. Raises HistoryError for a bad manifest."""
    try:
        manifest = orjson.loads((directory / "manifest.json").read_bytes())
        entries = manifest["entries"]
    except OSError as error:
        raise HistoryError(f"cannot read manifest.json: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise HistoryError(f"manifest.json: {error.msg}", line=error.lineno) from error
    except (KeyError, TypeError):
        raise HistoryError("manifest.json has no list of entries") from None
    for entry in entries:
        started = perf_counter()
        description = Description(
            file=entry["file"],
            model=entry["model"],
            format=entry.get("format"),
            property=entry.get("property"),
            settings=entry.get("settings") or {},
        )
        verdict = verdict_on(directory, description)
        seconds = perf_counter() - started
        yield Checked(description.file, verdict, expectation_of(entry).quarrel(verdict), seconds)


def verdict_on(directory: Path, description: Description) -> Verdict:
    """UNKNOWN, with the reason, for a file that cannot be read or judged."""
    try:
        history = read_history(directory / description.file, description.format)
        # A file that declares its object knows better than a description of it.
        model = history.declared_model or description.model
        return judge(
            history,
            model,
            property=description.property,
            settings=description.settings,
            explain=False,
            # The question here is what a history *is*, however little it says of a system.
            demand_evidence=False,
        )
    except HistoryError as error:
        return unknown(str(error))


def expectation_of(entry: Mapping[str, Any]) -> Expectation:
    must_report = entry.get("must_report")
    return Expectation(
        linearizable=entry.get("expected_linearizable"),
        valid=entry.get("expected_valid"),
        must_report=None if must_report is None else frozenset(must_report),
        must_not_report=frozenset(entry.get("must_not_report") or ()),
    )
