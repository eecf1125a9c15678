"""Who asks for a fault, as the history shows it."""

from __future__ import annotations

import getpass
import os
import socket

LONGEST = 100
"""Characters that a node takes."""


def who(through: str = "logboat chaos") -> str:
    """`ann@laptop (logboat chaos)`"""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    text = f"{user}@{socket.gethostname()} ({through})"
    return "".join(one if one.isprintable() else "?" for one in text)[:LONGEST]
