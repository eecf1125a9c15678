"""Linearizability in n log n, where the operations say enough, with a certificate.

`register` and `queue` need values that are written once, `sets` elements that come and go once,
`log` offsets. All answer with the order and a point for each operation, which `certificate`
verifies without knowing how it was found.
"""

from .certificate import Certificate
from .log import LogHistory, check_log
from .queue import check_queue
from .register import check_register, check_register_columns
from .sets import check_set

__all__ = [
    "Certificate",
    "LogHistory",
    "check_log",
    "check_queue",
    "check_register",
    "check_register_columns",
    "check_set",
]
