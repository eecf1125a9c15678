"""What all tests share: programs that a person may not have, and a machine that is busy."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.shares import Shares

# How long an example takes says nothing here: other work may hold the processor. Registered over
# the profile in force, which in CI is Hypothesis' own.
in_force = settings()
settings.register_profile(
    "busy machine",
    parent=in_force,
    deadline=None,
    suppress_health_check=[*in_force.suppress_health_check, HealthCheck.too_slow],
)
settings.load_profile("busy machine")

# A shell ignores Ctrl-C for what it starts in the background, and so would every process that a
# test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Shares | None:
    """Unless another way of sharing is asked for."""
    if config.getvalue("dist") != "load":
        return None
    from tests.shares import Shares

    return Shares(config, log)


@pytest.fixture
def foreign_leaks() -> Iterator[None]:
    """For tests that use kafka-python: it leaves sockets to the collector, which is not ours to
    report, neither in this test nor in a later one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@pytest.fixture
def absent() -> Callable[[str], NoReturn]:
    """What to do without a program: a person's run skips by name, a CI run fails, since `.ci/run`
    installs all of them."""

    def give_up(name: str) -> NoReturn:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is not installed; .ci/run should have done so")
        pytest.skip(f"{name} is not installed")

    return give_up


@pytest.fixture
def tool(absent: Callable[[str], NoReturn]) -> Callable[[str], str]:
    """Finds a program by its name."""

    def find(name: str) -> str:
        return shutil.which(name) or absent(name)

    return find
