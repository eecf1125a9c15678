"""A pause on purpose holds the loop, and ends early when somebody says so."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.seam.injected import new_switches

SOON_S = 25.0
"""Less than the pause, and far more than a busy machine needs."""


@pytest.mark.parametrize("after_s", [0.0, 0.3])
def test_a_pause_ends_when_it_is_woken(after_s: float) -> None:
    """Also before it has begun."""
    switches = new_switches()

    async def check() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        switches.pause(30)
        waking = threading.Timer(after_s, switches.wake)
        waking.start()
        await asyncio.sleep(0.2)
        waking.join()
        return loop.time() - began

    assert asyncio.run(check()) < SOON_S


def test_a_pause_that_has_not_begun_is_healed() -> None:
    switches = new_switches()

    async def check() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        switches.pause(30)
        switches.heal()
        await asyncio.sleep(0.2)
        return loop.time() - began

    assert asyncio.run(check()) < SOON_S


def test_a_pause_holds_the_loop_until_its_own_end() -> None:
    switches = new_switches()

    async def check() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        switches.wake()
        switches.pause(0.5)
        await asyncio.sleep(0.1)
        return loop.time() - began

    assert asyncio.run(check()) >= 0.5
