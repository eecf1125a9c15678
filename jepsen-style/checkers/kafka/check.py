"""The whole suite: every class, the levels it fails, and the verdict on the guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ...history import History
from ..verdict import Anomaly, Status, Verdict
from . import content, metadata, observations, order, recency
from .circles import transaction_cycles
from .ledger import Guarantee, Ledger, Ruling
from .promises import Promise, Promises
from .records import Records
from .rulings import LOSSES, WORST, Rulings
from .settings import KafkaSettings

LEVELS: Mapping[str, frozenset[str]] = {
    "L0 integrity": frozenset(
        {
            "inconsistent-offsets",
            "duplicate",
            "G1a",
            "phantom",
            "precommitted-read",
            "producer-epoch-went-back",
            "replica-divergence",
            "sequence-duplicate",
            "sequence-gap",
            "two-leaders",
            "two-records-in-epoch",
        }
    ),
    "L1 durability": frozenset(
        {
            "lost-write",
            "unseen",
            "lost-at-rest",
            "truncated-acked-record",
            "skipped-by-group",
        }
    ),
    "L2 order": frozenset(
        {
            "append-order-inversion",
            "nonmonotonic-send",
            "int-nonmonotonic-send",
            "poll-skip",
            "int-poll-skip",
            "nonmonotonic-poll",
            "int-nonmonotonic-poll",
            "G1c",
            "epoch-went-back",
            "isr-by-stale-epoch",
            "two-owners",
            "generation-went-back",
            "lost-commit",
            "stale-commit",
        }
    ),
    "L3 recency": frozenset({"stale-end", "end-went-back", "high-watermark-went-back"}),
    "L3 metadata": frozenset({"topics-not-linearizable"}),
}
"""Which promise an anomaly breaks. Suffixes of cycles (`-process`, `-realtime`) do not matter."""

UNLESS_SUBSCRIBED = frozenset({"poll-skip", "nonmonotonic-poll"})
CLAIMED = frozenset(LEVELS) - {"L3 recency"}
"""RULES V5: a partition's reads promise no recency, so that is reported and fails nothing."""
EXAMPLES_PER_CLASS = 10_000


@dataclass(frozen=True, slots=True)
class KafkaReport:
    """Everything the suite can say. `rulings`: see `Rulings.on`."""

    verdict: Verdict
    levels: Mapping[str, Status]
    guarantee: Guarantee
    rulings: tuple[tuple[Anomaly, Ruling], ...]
    worst_realtime_lag: tuple[int, str, int] | None
    promised: Mapping[str, Promise]
    """By topic, as far as the history says it."""


def check_kafka(history: History, settings: KafkaSettings | None = None) -> Verdict:
    return report_on(history, settings).verdict


def report_on(
    history: History, settings: KafkaSettings | None = None, ledger: Ledger | None = None
) -> KafkaReport:
    """`ledger` None: the one that the history's observations make."""
    chosen = settings or KafkaSettings()
    records = Records(history, acks_all=chosen.acks_all)
    promises = Promises.of(history)
    compacted = [key for key in records.keys if promises.of_key(key).compacted]
    chosen = replace(chosen, compacted=chosen.compacted.union(compacted))
    failing: list[Anomaly] = []
    reported: list[Anomaly] = []
    subscribed = chosen.sub_via == "subscribe" or "subscribe" in history.function
    for anomalies in every_class(records, chosen):
        for anomaly in islice(anomalies, EXAMPLES_PER_CLASS):
            allowed = (
                # What breaks no claimed level (int-send-skip, G1b, recency) is only reported.
                level_of(anomaly.kind) not in CLAIMED
                or (subscribed and anomaly.kind in UNLESS_SUBSCRIBED)
                or (anomaly.kind == "duplicate" and not chosen.idempotent)
                or (anomaly.kind == "unseen" and not chosen.final_reads)
            )
            (reported if allowed else failing).append(anomaly)
    cycles, allowed_cycles = transaction_cycles(records, chosen)
    failing.extend(cycles)
    reported.extend(allowed_cycles)
    court = Rulings(records, chosen, ledger or Ledger.of(history))
    rulings = tuple(court.on(failing))
    excused = {id(anomaly) for anomaly, ruling in rulings if ruling.guarantee is Guarantee.OUTSIDE}
    violations = tuple(anomaly for anomaly in failing if id(anomaly) not in excused)
    explained = tuple(anomaly for anomaly in failing if id(anomaly) in excused)
    status = Status.INVALID if violations else Status.VALID
    reason = str(violations[0]) if violations else ""
    undecided = [anomaly for anomaly in reported if anomaly.kind == "undecided"]
    if undecided and not violations:
        status, reason = Status.UNKNOWN, undecided[0].description
    if not violations and too_weak(records):
        reported.append(Anomaly("too-weak", "nothing was ever polled: a loss could not show"))
    verdict = Verdict(status, violations, (*explained, *reported), reason)
    return KafkaReport(
        verdict=verdict,
        levels=levels(verdict),
        guarantee=promise_kept(failing, rulings),
        rulings=rulings,
        worst_realtime_lag=order.worst_realtime_lag(records),
        promised=promises.by_topic,
    )


def every_class(records: Records, settings: KafkaSettings) -> Iterator[Iterator[Anomaly]]:
    history = records.history
    yield content.inconsistent_offsets(records)
    yield content.duplicates(records)
    yield content.lost_writes(records, settings)
    yield content.unseen(records, settings)
    yield content.aborted_reads(records)
    yield content.phantoms(records)
    yield content.precommitted_reads(records)
    yield content.intermediate_reads(records)
    yield order.polls_inside(records, settings)
    yield order.polls_between(records, settings)
    yield order.sends_inside(records)
    yield order.sends_between(records)
    yield order.append_order_inversions(records)
    yield recency.stale_ends(records)
    yield recency.committed_offsets(records)
    yield recency.group_ownership(records)
    yield recency.stale_commits(records)
    yield recency.skipped_by_groups(records)
    yield metadata.topics(records)
    yield observations.leader_epochs(history)
    yield observations.high_watermarks(history)
    yield observations.producer_sequences(history)
    yield observations.replica_equality(history)
    yield observations.epoch_records(history, settings.compacted)
    yield observations.missing_at_rest(records)
    yield observations.truncations(records)


def too_weak(records: Records) -> bool:
    """A history that could not have shown a loss proves nothing (case C03)."""
    sent = any(log.writer for log in records.keys.values())
    polled = any(log.polls for log in records.keys.values())
    observed = bool(
        records.history.observations or records.latest or records.committed or records.topics
    )
    return not (polled or observed or not sent) or not len(records.history)


def level_of(kind: str) -> str | None:
    base = kind.removesuffix("-realtime").removesuffix("-process")
    if base.endswith("-cycle-exists"):
        return "L2 order"
    for level, kinds in LEVELS.items():
        if base in kinds:
            return level
    return None


def levels(verdict: Verdict) -> dict[str, Status]:
    """Each level's own verdict; the unclaimed one judges what was only reported."""
    answer = {}
    for level in LEVELS:
        pool = verdict.anomalies if level in CLAIMED else (*verdict.anomalies, *verdict.reported)
        broken = any(level_of(anomaly.kind) == level for anomaly in pool)
        unsure = verdict.status is Status.UNKNOWN
        answer[level] = Status.INVALID if broken else Status.UNKNOWN if unsure else Status.VALID
    return answer


def promise_kept(
    failing: Sequence[Anomaly], rulings: Sequence[tuple[Anomaly, Ruling]]
) -> Guarantee:
    """The worst ruling is the run's; what breaks records otherwise is a violation."""
    unruled = LEVELS["L0 integrity"] - LOSSES | {"truncated-acked-record"}
    if any(anomaly.kind in unruled for anomaly in failing):
        return Guarantee.VIOLATION
    return max((ruling.guarantee for _, ruling in rulings), key=WORST, default=Guarantee.HELD)
