"""What a broker must know of a batch's records without unpacking them: times, and missing keys.

One walk over the lengths, several times as fast as `decode_records`: a record says how long it is,
and its time stands in front.
"""

from __future__ import annotations

from ..buffers import Buffer
from ..exceptions import DecodeError
from ..varint import SIGNED_BYTE, decode_signed
from .batch_header import NO_TIMESTAMP, BatchHeader
from .errors import InvalidBatch


def timestamp_range(header: BatchHeader, records: Buffer) -> tuple[int, int]:
    """The smallest and the largest timestamp in `records`, the batch's body, uncompressed.

    NO_TIMESTAMP for both when there are no records.

    Raises:
        InvalidBatch: the records do not fill the body exactly.
    """
    if header.records_count == 0:
        return NO_TIMESTAMP, NO_TIMESTAMP
    end, lowest, highest = survey_records(records, 0, header.records_count)
    if end != len(records):
        raise InvalidBatch(f"{header.records_count} records end at byte {end} of {len(records)}")
    return header.base_timestamp + lowest, header.base_timestamp + highest


def survey_records(records: Buffer, position: int, count: int) -> tuple[int, int, int]:
    """Where the next `count` records from `position` end, and their smallest and largest timestamp
    delta: a piece of `timestamp_range`, for those that must not take long at a time.

    Raises:
        InvalidBatch: they do not lie within `records`.
    """
    try:
        return _survey(records, position, count)
    except IndexError:
        raise InvalidBatch(f"{count} records from byte {position} of {len(records)}") from None
    except DecodeError as error:
        raise InvalidBatch(str(error)) from error


def _survey(data: Buffer, position: int, count: int) -> tuple[int, int, int]:
    lowest, highest = 1 << 64, -1 << 64
    for _ in range(count):
        # Most lengths and times take one or two bytes; reading those without a call doubles the
        # speed.
        byte = data[position]
        if byte < 128:
            length = SIGNED_BYTE[byte]
            position += 1
        else:
            length, position = decode_signed(data, position)
        byte = data[position + 1]
        if byte < 128:
            delta = SIGNED_BYTE[byte]
        else:
            delta, _ = decode_signed(data, position + 1)
        if delta > highest:
            highest = delta
        if delta < lowest:
            lowest = delta
        if length < _SMALLEST_BODY:
            raise InvalidBatch(f"record of {length} bytes at byte {position}")
        position += length
    if position > len(data):
        raise InvalidBatch(f"{count} records end at byte {position} of {len(data)}")
    return position, lowest, highest


_SMALLEST_BODY = 6
"""Attributes, two deltas, key, value and header count, one byte each."""
