"""Models of data that one pass decides: bank, counter, set, set-full, long-fork."""

from .bank import check_bank
from .counter import check_counter
from .long_fork import check_long_fork
from .sets import check_set, check_set_full

__all__ = ["check_bank", "check_counter", "check_long_fork", "check_set", "check_set_full"]
