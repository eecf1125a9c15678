"""What this machine has to hurt processes with: looked for, the best taken, the missing named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import clocks, tracing, volumes
from .namespaces import why_no_namespaces

SIGNALS, PROXIES, FILES = "signals", "proxies", "changes to the files of stopped nodes"
STRACE = "strace"
FAKETIME, WRONG_CLOCK = "libfaketime", "a replaced time module"
LOOP, TMPFS, NAMESPACES = "ext4 on loop devices", "full tmpfs", "iptables in network namespaces"

NEEDS: Mapping[str, Sequence[str]] = {
    kind: means
    for means, kinds in (
        ((SIGNALS,), ("kill", "kill-all", "pause", "stall", "restart")),
        ((NAMESPACES, PROXIES), ("isolate", "halves", "ring", "bridge", "clients-cut")),
        ((PROXIES,), ("reset", "delay", "reorder", "loss", "lost-responses", "lost-requests")),
        ((FILES,), ("bit-flip", "misdirected-write", "stale-block", "wiped-disk")),
        ((STRACE,), ("failed-sync", "slow-disk", "kill-at-sync")),
        ((FAKETIME, WRONG_CLOCK), ("clock-step", "clock-skew")),
        ((LOOP,), ("power-cut", "blackout")),
        ((LOOP, TMPFS), ("full-disk",)),
    )
    for kind in kinds
}
"""Each kind of fault that real processes can be given, with its means, the best first."""

ROOT_ONLY = (LOOP, TMPFS, NAMESPACES)


@dataclass(frozen=True, slots=True)
class Means:
    """What was found, and why the rest is missing."""

    missing: Mapping[str, str] = field(default_factory=dict)
    faketime_library: str | None = None

    def has(self, means: str) -> bool:
        return means not in self.missing

    def of(self, kind: str) -> str | None:
        """What carries this kind of fault out; None: it is skipped."""
        return next((means for means in NEEDS[kind] if self.has(means)), None)

    @property
    def volumes(self) -> str | None:
        """The kind of file system that the nodes get of their own."""
        if self.has(LOOP):
            return volumes.EXT4
        return volumes.TMPFS if self.has(TMPFS) else None

    def lines(self) -> list[str]:
        """For the report: what is used for what, what is skipped, and why not something better."""
        used: dict[str, list[str]] = {}
        skipped: dict[str, list[str]] = {}
        for kind, choice in NEEDS.items():
            means = self.of(kind)
            lacking = [better for better in choice if better in self.missing]
            why = "; ".join(f"no {better}: {self.missing[better]}" for better in lacking)
            if means is None:
                skipped.setdefault(why, []).append(kind)
            else:
                used.setdefault(f"{means} ({why})" if why else means, []).append(kind)
        return [
            *(f"by {means}: {', '.join(kinds)}" for means, kinds in used.items()),
            *(f"skipped, {why}: {', '.join(kinds)}" for why, kinds in skipped.items()),
        ]


def find_means(*, root: bool) -> Means:
    """Tries each out; takes about a second. Without `root` nothing that needs it is touched."""
    missing: dict[str, str] = {}

    def note(means: str, why: str | None) -> None:
        if why is not None:
            missing[means] = why

    note(STRACE, tracing.why_not())
    library, why = clocks.find_library()
    note(FAKETIME, why or None)
    if root:
        note(LOOP, volumes.why_no(volumes.EXT4))
        note(TMPFS, volumes.why_no(volumes.TMPFS) if LOOP in missing else None)
        note(NAMESPACES, why_no_namespaces())
    else:
        missing.update(dict.fromkeys(ROOT_ONLY, "it needs --root"))
    return Means(missing, library)
