"""Commands of brokers are those of the incarnation that is registered now, or refused."""

from __future__ import annotations

from ...wire import ErrorCode
from ..image import ClusterImage
from ..results import Result, refuse


def stale_incarnation(image: ClusterImage, broker_id: int, broker_epoch: int) -> Result | None:
    """The refusal of a command by another incarnation of the broker; None when it is this one."""
    broker = image.brokers.get(broker_id)
    if broker is not None and broker.broker_epoch == broker_epoch:
        return None
    return refuse(
        ErrorCode.STALE_BROKER_EPOCH,
        f"broker {broker_id} is not registered with epoch {broker_epoch}",
    )
