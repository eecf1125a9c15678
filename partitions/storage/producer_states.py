"""What a log remembers of idempotent producers. (Signatures first; the bodies follow.)"""

from __future__ import annotations


class ProducerStates:
    pass
