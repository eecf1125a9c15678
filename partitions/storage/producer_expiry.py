"""When a log forgets a producer that fell silent (KIP-854). Wall time: a matter of memory only.

A forgotten producer may go on at any sequence, so expiry trades the recognition of very late
repeats for a bounded map. One with an open transaction is never forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...seam import frozen

EXPIRATION = "producer.id.expiration.ms"
CHECK_INTERVAL = "producer.id.expiration.check.interval.ms"


@frozen
class ProducerExpiry:
    expiration_ms: int = 86_400_000
    """Since the producer's last batch or marker (KAFKA-9144)."""
    check_interval_ms: int = 600_000

    @classmethod
    def from_broker_configs(cls, configs: Mapping[str, str]) -> ProducerExpiry:
        """What is absent keeps its default. Raises ValueError."""
        given = {
            field: int(configs[name])
            for name, field in (
                (EXPIRATION, "expiration_ms"),
                (CHECK_INTERVAL, "check_interval_ms"),
            )
            if name in configs
        }
        return cls(**given)
