"""Log compaction: of each key the newest record stays (`cleanup.policy=compact`).

Promises: offsets and order never change; the newest record of every key survives, a tombstone for
at least `delete.retention.ms` after a round first met it; what a crash interrupts is done again or
was done whole; the loop is never held for more than a few milliseconds (RULES F1). Pure cores
decide (`cleanable`, `retention`, `transactions`, `key_map`, `batch_rebuild`), `cleaning` carries
one round out, `log_cleaner` is the task that looks for work.
"""

from .log_cleaner import CleaningCandidate, LogCleaner
from .settings import CleanerSettings

__all__ = ["CleanerSettings", "CleaningCandidate", "LogCleaner"]
