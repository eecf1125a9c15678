"""A principal as an envelope carries it."""

from __future__ import annotations

from ..schema import Message, boolean, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """A principal inside an envelope."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
