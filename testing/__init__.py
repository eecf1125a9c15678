"""A running cluster for people's tests: a context manager, a pytest plugin, and the demo.

`LocalCluster` starts real node processes on free ports in a temporary folder, through the same
code as `logboat cluster up`. Nothing here is imported by the product below it.

    from logboat.testing import LocalCluster

    with LocalCluster(nodes=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .local_cluster import PATIENT, LocalCluster, NotInTime

__all__ = ["PATIENT", "LocalCluster", "NotInTime"]


def __getattr__(name: str) -> Any:
    # On first use: pytest imports this package for its plugin in every project that has Logboat
    # installed, and should not pay for process handling there.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import local_cluster

    return getattr(local_cluster, name)
