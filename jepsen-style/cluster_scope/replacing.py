"""A function of the product in the place of another one, for the length of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def replaced(owner: Any, name: str, put: Callable[[Any], Any]) -> Iterator[None]:
    """`put` makes the new function from the old one."""
    original = owner.__dict__[name]
    setattr(owner, name, put(original))
    try:
        yield
    finally:
        setattr(owner, name, original)
