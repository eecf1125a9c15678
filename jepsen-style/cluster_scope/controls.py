"""Bugs put into the product from outside, to show that the scope sees them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

Patch = Callable[[], contextlib.AbstractContextManager[None]]

BUGS: Mapping[str, Patch] = {}
"""By name."""


@contextlib.contextmanager
def broken_by(bug: str | None) -> Iterator[None]:
    """The product has this bug meanwhile. Raises KeyError for one that is not there."""
    if bug is None:
        yield
        return
    with BUGS[bug]():
        yield
