"""The loop thread of a synchronous client: Ctrl-C may be heard at any moment of the asker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from logboat.client.sdk.loop_thread import LoopThread


@contextmanager
def running() -> Iterator[LoopThread]:
    thread = LoopThread()
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()


def interrupted(thread: LoopThread, *, handed_over: bool) -> Callable[..., Any]:
    """As the loop's `call_soon_threadsafe`, interrupted the first time."""
    loop = thread._loop
    assert loop is not None
    original = loop.call_soon_threadsafe
    calls: list[Any] = []

    def call_soon_threadsafe(callback: Callable[..., Any], *args: Any, **named: Any) -> Any:
        calls.append(callback)
        if len(calls) > 1 or handed_over:
            original(callback, *args, **named)
        if len(calls) == 1:
            raise KeyboardInterrupt

    return call_soon_threadsafe


@pytest.mark.parametrize("handed_over", [True, False])
def test_work_is_cancelled_when_its_asker_is_interrupted_while_handing_it_over(
    monkeypatch: pytest.MonkeyPatch, handed_over: bool
) -> None:
    async def for_ever() -> None:
        await asyncio.Event().wait()

    async def tasks() -> int:
        for _ in range(10):  # One that is cancelled has a few turns to end.
            await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    with running() as thread:
        with monkeypatch.context() as patch:
            patch.setattr(
                thread._loop, "call_soon_threadsafe", interrupted(thread, handed_over=handed_over)
            )
            with pytest.raises(KeyboardInterrupt):
                thread.run(for_ever())
        assert thread.run(tasks()) == 2, "this one, and what keeps the loop"


def test_what_work_returns_or_raises_is_the_askers() -> None:
    async def answer(error: Exception | None) -> int:
        if error is not None:
            raise error
        return 7

    with running() as thread:
        assert thread.run(answer(None)) == 7
        for kind in (ValueError, StopAsyncIteration):
            with pytest.raises(kind):
                thread.run(answer(kind()))
