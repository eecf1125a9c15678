"""A body of objects one after the other is cut where they end, however it arrives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logboat.node.http.json_objects import ObjectSplitter

texts = st.text('ab"\\{}[] \n\u00f6\U0001f600', max_size=6)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(-9, 99) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
objects = st.dictionaries(texts, values, max_size=3)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(objects, st.sampled_from(["", " ", "\n", "\r\n\t"]), st.booleans()), max_size=4
    ),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
def test_objects_come_out_as_they_went_in_whatever_the_pieces(
    sent: list[tuple[dict[str, Any], str, bool]], sizes: list[int]
) -> None:
    text = "".join(
        blank + json.dumps(one, indent=1 if pretty else None) for one, blank, pretty in sent
    )
    body = text.encode()
    splitter = ObjectSplitter(1 << 20)
    found: list[bytes] = []
    turn = 0
    while body:
        size = sizes[turn % len(sizes)]
        turn += 1
        found += splitter.feed(body[:size])
        body = body[size:]
    assert [json.loads(one) for one in found] == [one for one, _, _ in sent]
    assert not splitter.unfinished


def test_what_follows_the_last_object_is_kept_for_the_next_piece() -> None:
    splitter = ObjectSplitter(100)
    assert splitter.feed(b'{"a":"}\\') == []
    assert splitter.unfinished
    assert splitter.feed(b'""}  \n{') == [b'{"a":"}\\""}']
    assert splitter.unfinished
    assert splitter.feed(b"}\n") == [b"{}"]
    assert not splitter.unfinished


@pytest.mark.parametrize("body", [b"[1]", b"1", b'"x"', b"{},{}", b"{}\x00", b"}", b"\xff\xfe"])
def test_what_is_no_object_ends_the_body(body: bytes) -> None:
    splitter = ObjectSplitter(100)
    assert splitter.feed(b'{"a":1}' + body)[0] == b'{"a":1}'
    assert splitter.problem is not None
    assert splitter.problem.status == 400


def test_an_object_of_more_than_the_bound_is_refused() -> None:
    splitter = ObjectSplitter(10)
    assert splitter.feed(b'{"a":"' + b"x" * 10) == []
    assert splitter.problem is not None
    assert splitter.problem.status == 413
