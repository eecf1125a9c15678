"""Isolation of transactions: which orders must hold between them, and do these run in a circle?

`list_append` and `rw_register` recover the edges from values written once (Kingsbury & Alvaro,
"Elle", VLDB 2020); `graph` finds components and shortest cycles; `properties` says which circles
an isolation level forbids.
"""

from .list_append import check_list_append
from .properties import PROPERTIES, property_named
from .rw_register import check_rw_register

__all__ = ["PROPERTIES", "check_list_append", "check_rw_register", "property_named"]
