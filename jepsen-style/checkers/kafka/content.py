"""Integrity and durability (L0, L1): what is at an offset, what is lost, what came from nowhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..verdict import Anomaly
from .records import NOBODY, KeyLog, Records
from .settings import KafkaSettings


def inconsistent_offsets(records: Records) -> Iterator[Anomaly]:
    """One offset of one key carried two different values, in acknowledgements or polls. The
    operations are the first that told of each, in the order in which clients knew.
    """
    for key, log in records.keys.items():
        told = first_told(records, log) if log.conflicts else {}
        for offset, values in log.conflicts.items():
            named = ", ".join(sorted(map(repr, values)))
            yield Anomaly(
                "inconsistent-offsets",
                f"offset {offset} of {key!r} held {named}",
                tuple(dict.fromkeys((*told[offset], log.witness[offset]))),
                {"key": key, "offset": offset},
            )


def first_told(records: Records, log: KeyLog) -> dict[int, list[int]]:
    """By conflicting offset: for each value there the operation by which a client first knew of it,
    its sender's or a reader's; in order of completion.
    """
    completed = records.history.completed
    first: dict[int, dict[Hashable, int]] = {offset: {} for offset in log.conflicts}

    def tell(offset: int, value: Hashable, operation: int) -> None:
        known = first[offset].setdefault(value, operation)
        if completed[operation] < completed[known]:
            first[offset][value] = operation

    for offset, values in log.conflicts.items():
        for value in values:
            if log.acked.get(value) == offset:
                tell(offset, value, log.writer[value])
    for reader, offsets in log.polls:
        for offset in offsets:
            if offset in first:
                tell(offset, log.misread.get((reader, offset), log.value_at[offset]), reader)
    return {
        offset: sorted(told.values(), key=completed.__getitem__) for offset, told in first.items()
    }


def duplicates(records: Records) -> Iterator[Anomaly]:
    """One value at two offsets of a key. Delivered twice at one offset is no duplicate."""
    for key, log in records.keys.items():
        for value, offsets in log.repeated.items():
            where = ", ".join(map(str, sorted(offsets)))
            shown = tuple(
                {log.witness[offset]: None for offset in offsets if offset in log.witness}
            )
            yield Anomaly(
                "duplicate",
                f"{value!r} of {key!r} is at offsets {where}",
                shown,
                {"key": key, "offset": max(offsets)},
            )


def lost_writes(records: Records, settings: KafkaSettings) -> Iterator[Anomaly]:
    """A certain send at or below the furthest index that anyone read, which nobody read.

    The bound takes first appearances and the victim last ones, so a duplicate alarms nobody.
    """
    for key, log in records.keys.items():
        bound = None if log.told else furthest_read(log)
        if bound is None:
            continue
        for value, writer in log.writer.items():
            if log.reader(value) is not None:
                continue
            # None: nobody knows its offset, so an uncertain send stays uncertain.
            place = log.last_index(value)
            if place is None or place > bound or excused(log, place, settings):
                continue
            offset = log.offsets[place]
            yield Anomaly(
                "lost-write",
                f"{value!r} at offset {offset} of {key!r} was never read, later ones were",
                (writer,),
                {"key": key, "offset": offset, "value": value},
            )


def furthest_read(log: KeyLog) -> int | None:
    """The greatest first index among the values that were read."""
    # Reading in order of offsets is the rule: look from the end.
    for place in range(len(log.offsets) - 1, -1, -1):
        value = log.value_at[log.offsets[place]]
        if log.index(value) == place and log.reader(value) is not None:
            return place
    return None


TOMBSTONE = 3
"""So many parts has the value `[record key, name, null]`."""


def excused(log: KeyLog, place: int, settings: KafkaSettings) -> bool:
    """Retention removed it, or compaction may have: a later record has the same record key, or it
    is a tombstone, whose time may be up."""
    if log.offsets[place] < log.log_start:
        return True
    if log.key not in settings.compacted:
        return False
    value = log.value_at[log.offsets[place]]
    if is_tombstone(value) or place < last_places(log)[record_key(value)]:
        return True
    # One that nobody was answered for, and that has gone since, may have replaced it.
    return any(
        is_tombstone(sent) and record_key(sent) == record_key(value) and sent not in log.offset_of
        for sent in log.sent_values
    )


def is_tombstone(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == TOMBSTONE


def record_key(value: object) -> object:
    return value[0] if isinstance(value, tuple) else value


def last_places(log: KeyLog) -> dict[object, int]:
    return {record_key(log.value_at[offset]): place for place, offset in enumerate(log.offsets)}


def unseen(records: Records, settings: KafkaSettings) -> Iterator[Anomaly]:
    """Acknowledged, and no poll ever returned it: lost, or the last reads did not reach it."""
    for key, log in records.keys.items():
        if log.told:
            continue
        for value, offset in log.acked.items():
            if log.reader(value) is not None or excused(log, log.index_of[offset], settings):
                continue
            yield Anomaly(
                "unseen",
                f"{value!r} acknowledged at offset {offset} of {key!r} was never polled",
                (log.writer[value],),
                {"key": key, "offset": offset, "value": value},
            )


def aborted_reads(records: Records) -> Iterator[Anomaly]:
    """An ok poll returned a value whose send definitely failed."""
    for key, log in records.keys.items():
        for value, writer in log.failed.items():
            reader = log.reader(value)
            if reader is not None and value not in log.writer:
                yield Anomaly(
                    "G1a",
                    f"{value!r} of {key!r} was read although its send failed",
                    (writer, reader),
                    {"key": key, "value": value},
                )


def phantoms(records: Records) -> Iterator[Anomaly]:
    """A polled value that no client ever tried to send."""
    for key, log in records.keys.items():
        if log.told:
            continue
        polled = {
            log.value_at[offset]: reader
            for offset, reader in zip(log.offsets, log.readers, strict=True)
            if reader != NOBODY
        }
        for value, reader in (polled | log.strays).items():
            if value not in log.writer and value not in log.failed:
                yield Anomaly(
                    "phantom",
                    f"{value!r} of {key!r} was polled, and nobody sent it",
                    (reader,),
                    {"key": key, "value": value},
                )


def precommitted_reads(records: Records) -> Iterator[Anomaly]:
    """A transaction polled a record that it had sent itself: not committed yet, so not visible."""
    for index, micros in records.multi.items():
        sent = {(micro[1], micro[2][0]) for micro in micros if micro[0] == "send"}
        for micro in micros:
            if micro[0] != "poll" or len(micro) < 2:
                continue
            for key, pairs in micro[1].items():
                for offset, value in pairs:
                    if (key, offset) in sent:
                        yield Anomaly(
                            "precommitted-read",
                            f"polled its own {value!r} at offset {offset} of {key!r}",
                            (index,),
                            {"key": key, "offset": offset},
                        )


def intermediate_reads(records: Records) -> Iterator[Anomaly]:
    """A poll that ends amid the sends of one transaction. Kafka allows it: polls are bounded."""
    if not records.multi:
        return
    for key, log in records.keys.items():
        last_of = {index: values[-1] for index, values in log.sends if len(values) > 1}
        if not last_of:
            continue
        for reader, offsets in log.polls:
            value = log.value_at[offsets[-1]]
            writer = log.writer.get(value)
            if writer in last_of and writer != reader and last_of[writer] != value:
                yield Anomaly(
                    "G1b",
                    f"a poll of {key!r} ends at {value!r}, amid a transaction",
                    (writer, reader),
                    {"key": key},
                )
