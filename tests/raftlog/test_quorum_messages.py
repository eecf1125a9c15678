"""The quorum's messages: exact inverses, and nothing else is taken from a peer."""

from __future__ import annotations

import pickle
from uuid import UUID

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.raftlog.messages import (
    Ack,
    Append,
    BadMessage,
    CalledVoteRequest,
    Forward,
    Message,
    Ping,
    Pinned,
    Pong,
    PreVote,
    PreVoteRequest,
    SnapshotChunk,
    SnapshotOffer,
    Stale,
    TimeoutNow,
    Vote,
    VoteRequest,
    decode_message,
    encode_message,
)

numbers = st.integers(0, 2**63 - 1)
booleans = st.booleans()


@st.composite
def appends(draw: st.DrawFn) -> Append:
    terms = sorted(draw(st.lists(st.integers(0, 50), min_size=1, max_size=8)))
    prev_index = draw(st.integers(0, 2**40))
    entries = [
        (draw(st.sampled_from([b"\0", b"\1"])) + draw(st.binary(max_size=50)), index, term)
        for index, term in enumerate(terms[1:], start=prev_index + 1)
    ]
    return Append(terms[-1] + draw(st.integers(0, 3)), draw(numbers), prev_index, terms[0], entries)


messages = st.one_of(
    appends(),
    st.builds(Ack, numbers, numbers, booleans, booleans),
    st.builds(VoteRequest, numbers, numbers, numbers),
    st.builds(Vote, numbers),
    st.builds(SnapshotChunk, numbers, numbers, numbers, numbers, numbers, numbers, st.binary()),
    st.builds(Stale, numbers),
    st.builds(PreVoteRequest, numbers, numbers, numbers, numbers),
    st.builds(PreVote, numbers, booleans, numbers),
    st.builds(Pinned, st.uuids()),
    st.builds(Ping, numbers),
    st.builds(Pong, numbers),
    st.builds(TimeoutNow, numbers),
    st.builds(CalledVoteRequest, numbers, numbers, numbers),
)


@given(messages)
def test_decoding_inverts_encoding(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


@given(st.binary(max_size=200))
def test_garbage_is_refused_and_nothing_else_is_raised(garbage: bytes) -> None:
    try:
        message = decode_message(garbage)
    except BadMessage:
        return
    assert decode_message(encode_message(message)) == message


@given(messages, st.data())
def test_a_truncated_message_is_refused(message: Message, data: st.DataObject) -> None:
    encoded = encode_message(message)
    with pytest.raises(BadMessage):
        decode_message(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@pytest.mark.parametrize(
    "fields",
    [
        [1, 5, 0, 3, 2, [[b"\x02member", 3]]],  # the engine's membership command
        [1, 5, 0, 3, 2, [[b"\x03version", 3]]],
        [1, 5, 0, 3, 2, [[b"", 3]]],
        [1, 5, 0, 3, 2, [["\0text", 3]]],
        [1, 5, 0, 3, 2, [[b"\0x", 6]]],  # an entry of a later term than its message
        [1, 5, 0, 3, 2, [[b"\0x", 1]]],  # terms that fall
        [1, 5, 0, 3, 2, [[b"\0x", 3, 4]]],
        [1, 5, 0, 3, 2, 7],
        [1, 5, 0, -3, 2, []],
        [1, 5, 0, None, None, []],
        [1, 5, 0, 3, 2],
        [1, True, 0, 3, 2, []],
        [2, 5, 4, 1, 0],  # numbers for booleans
        [2, 5, -4, True, False],
        [2, 5, 4, True],
        [3, 5, 1.5, 2],
        [9, b"short"],
        [9, "0123456789abcdef"],
        [12, 1],
        [-1],
        [],
        {"type": "append_entries"},
        "append_entries",
        None,
        7,
        [msgpack.ExtType(4, b"x"), 1],
    ],
)
def test_other_shapes_are_refused(fields: object) -> None:
    with pytest.raises(BadMessage):
        decode_message(msgpack.packb(fields))


def test_a_pickle_is_refused() -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return (pytest.fail, ("executed",))

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(BadMessage):
            decode_message(pickle.dumps(Bomb(), protocol))


@pytest.mark.parametrize("message", [Forward(1), SnapshotOffer(1, 1, True)])
def test_what_lives_between_engine_and_guards_does_not_travel(message: Message) -> None:
    with pytest.raises(BadMessage):
        encode_message(message)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(BadMessage):
        decode_message(b"\x91" * 5000 + b"\x01")


def test_directory_ids_travel_whole() -> None:
    pinned = Pinned(UUID(int=2**127 + 5))
    assert decode_message(encode_message(pinned)) == pinned
