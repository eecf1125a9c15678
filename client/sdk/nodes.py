"""Which node to ask: the ones named at the start, and all that they tell of."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .errors import ClientError

ENVIRONMENT = "LOGBOAT_HTTP"
DEFAULT_URL = "http://127.0.0.1:8082"


def urls_of(given: Iterable[str]) -> list[str]:
    """Those given; else those of the environment variable, separated by commas; else this machine.

    Raises ClientError for what is no `http://host:port`.
    """
    named = list(given) or [url for url in os.environ.get(ENVIRONMENT, "").split(",") if url]
    return list(dict.fromkeys(_checked(url) for url in named or [DEFAULT_URL]))


def _checked(url: str) -> str:
    scheme, separator, rest = url.strip().rstrip("/").partition("://")
    if not separator or scheme != "http" or not rest or "/" in rest:
        raise ClientError(f"{url!r} is not http://host:port")
    return f"http://{rest}"


class Nodes:
    """One is asked until it fails; then the next."""

    def __init__(self, urls: list[str]) -> None:
        self._seeds = urls
        self._urls = list(urls)
        self._at = 0

    @property
    def current(self) -> str:
        return self._urls[self._at]

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self._urls)

    def failed(self, url: str) -> None:
        """Ask another one from now on, if it was this one's turn."""
        if url == self.current:
            self._at = (self._at + 1) % len(self._urls)

    def learn(self, urls: Iterable[str]) -> None:
        """The cluster's own list; the seeds stay, for all others may move."""
        current = self.current
        self._urls = list(dict.fromkeys([*urls, *self._seeds]))
        self._at = self._urls.index(current) if current in self._urls else 0
