"""Programs that tests need and a person may not have."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import NoReturn

import pytest


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
