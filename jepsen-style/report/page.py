"""The page around the drawings. The failing part of the history comes first."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from ..checkers import Anomaly, Status, Verdict
from ..checkers.kafka import KafkaReport
from ..checkers.polynomial import Certificate
from ..history import History
from .partitions import partitions
from .timeline import MOST_OPERATIONS, events, lanes

STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1140px; color: #222; }
h1 small { font-weight: normal; color: #666; }
.invalid { color: #b00020; } .valid { color: #1b6e3c; } .unknown { color: #8a6d00; }
table { border-collapse: collapse; } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd;
text-align: left; vertical-align: top; }
svg { background: #fafafa; display: block; margin: .5em 0 1.5em; overflow: visible; }
svg text { font: 11px system-ui, sans-serif; } .lane { fill: #666; }
.op rect { fill: #b7e1c4; stroke: #5c9c70; } .op.info rect { fill: #f4e3a1; stroke: #b39b3a; }
.op.fail rect { fill: #e0e0e0; stroke: #999; } .op.failing rect { stroke: #b00020;
stroke-width: 2; } .point { fill: #1a4fa3; } .event line { stroke: #b00020; stroke-width: 2; }
.leadership rect { fill: #bcd3f2; stroke: #4a76b0; } .leaderless rect { fill: none;
stroke: #b00020; stroke-dasharray: 3; } .isr rect { fill: #dccdf0; stroke: #8a6bb5; }
.high-watermark polyline { fill: none; stroke: #1b6e3c; stroke-width: 1.5; }
"""
SHOWN = 200


def write_report(
    path: Path, history: History, verdict: Verdict, *, title: str, kafka: KafkaReport | None = None
) -> None:
    """One file that nothing has to be fetched for."""
    path.write_text(page(history, verdict, title=title, kafka=kafka), encoding="utf-8")


def page(
    history: History, verdict: Verdict, *, title: str, kafka: KafkaReport | None = None
) -> str:
    status = verdict.status.value
    failing = frozenset(
        index for anomaly in verdict.anomalies[:SHOWN] for index in anomaly.operations
    )
    points = points_of(verdict) or points_searched(history, verdict)
    everything = range(len(history))
    parts = [
        f"<h1>{escape(title)} <small>{len(history)} operations</small></h1>",
        f'<p class="{status}" id="status">{status}</p>',
    ]
    if verdict.status is Status.UNKNOWN:
        parts.append(f"<p>{escape(verdict.reason)}</p>")
    if failing:
        drawn = lanes(history, sorted(failing), failing=failing, points=points)
        parts.append(f'<section id="failing"><h2>What fails</h2>{drawn}</section>')
    parts.append(table("Anomalies", verdict.anomalies))
    parts.append(table("Reported, and allowed", verdict.reported))
    if kafka is not None:
        parts.append(promises(kafka))
    parts.append(f"<h2>Faults</h2>{events(history, ('fault',))}")
    parts.append(f"<h2>Leaders, ISR, high watermarks</h2>{partitions(history)}")
    drawn = lanes(history, everything, failing=failing, points=points)
    parts.append(f"<h2>Clients</h2>{drawn}")
    if len(history) > MOST_OPERATIONS:
        parts.append(f"<p>Only the first {MOST_OPERATIONS} operations are drawn.</p>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def points_of(verdict: Verdict) -> dict[int, int]:
    """Linearization points from a certificate, where it has them."""
    found = verdict.certificate
    if hasattr(found, "certificate"):
        found = found.certificate()
    if isinstance(found, Certificate):
        return dict(zip(found.order, found.points, strict=True))
    return {}


def points_searched(history: History, verdict: Verdict) -> dict[int, int]:
    """Points for the orders that the general search found: as early as these allow."""
    points: dict[int, int] = {}
    if isinstance(verdict.certificate, Mapping):
        for order in verdict.certificate.values():
            latest = -1
            for index in order:
                latest = max(latest, history.invoked[index])
                points[index] = latest
    return points


def table(title: str, anomalies: tuple[Anomaly, ...]) -> str:
    if not anomalies:
        return ""
    rows = "".join(
        f"<tr><th>{escape(a.kind)}</th><td>{escape(a.description)}</td>"
        f"<td>{', '.join(map(str, a.operations))}</td></tr>"
        for a in anomalies[:SHOWN]
    )
    more = len(anomalies) - SHOWN
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    return (
        f"<h2>{escape(title)}</h2><table><tr><th>class</th><th>what</th><th>operations</th></tr>"
        f"{rows}</table>{rest}"
    )


def promises(report: KafkaReport) -> str:
    rows = "".join(
        f'<tr><th>{escape(level)}</th><td class="{status.value}">{status.value}</td></tr>'
        for level, status in report.levels.items()
    )
    rulings = "".join(
        f"<tr><th>{escape(ruling.guarantee.value)}</th><td>{escape(anomaly.description)}</td>"
        f"<td>{escape(ruling.reason)}</td></tr>"
        for anomaly, ruling in report.rulings[:SHOWN]
    )
    promised = "".join(
        f"<tr><th>{escape(topic)}</th><td>{escape(str(promise))}</td></tr>"
        for topic, promise in sorted(report.promised.items())
    )
    lag = report.worst_realtime_lag
    stale = (
        f"<p>The stalest poll of {escape(lag[1])!r} was {lag[0] / 1e9:.3f} s behind.</p>"
        if lag is not None
        else ""
    )
    return (
        f"<h2>Guarantee: {escape(report.guarantee.value)}</h2><table>{rows}</table>"
        f'<table class="promised">{promised}</table><table>{rulings}</table>{stale}'
    )
