"""The active controller: the quorum's leader after its `NewController` command (RULES A4).

`Controller` stands on every voter and answers NOT_CONTROLLER unless it is active. It alone holds
broker sessions and proposes fencing. Nothing is decided here that a command does not decide again
when it is applied: between its making and its place in the log anything may have happened.
"""

from .answer import ControllerAnswer
from .controller import Controller
from .quorum import Quorum
from .settings import ControllerSettings

__all__ = ["Controller", "ControllerAnswer", "ControllerSettings", "Quorum"]
