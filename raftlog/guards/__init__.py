"""The corrections that make the engine trustworthy, one file per guard.

Numbers are those of the list that the tests and decisions refer to. There is no G3: it became part
of G1.
"""

from collections.abc import Callable, Sequence

from .backtracking import Backtracking
from .durable_first import DurableFirst
from .guard import Guard, GuardContext
from .new_directories import NewDirectories
from .no_forwarding import NoForwarding
from .no_needless_truncation import NoNeedlessTruncation
from .no_resending import NoResending
from .old_snapshots import OldSnapshots
from .pinned_directories import PinnedDirectories
from .pre_vote import PreVoting
from .snapshot_commit import SnapshotCommit
from .snapshot_spin import SnapshotSpin
from .term_of_answers import TermOfAnswers

GuardFactory = Callable[[GuardContext], Guard]

ALL_GUARDS: Sequence[type[Guard]] = (
    # Outermost first. G10 must see a leader's messages before any other guard swallows them; G9
    # holds acknowledgements back before G1 compares their term with the one at delivery.
    PreVoting,
    OldSnapshots,
    SnapshotCommit,
    DurableFirst,
    TermOfAnswers,
    NoResending,
    Backtracking,
    NoNeedlessTruncation,
    SnapshotSpin,
    NoForwarding,
)

__all__ = [
    "ALL_GUARDS",
    "Backtracking",
    "DurableFirst",
    "Guard",
    "GuardContext",
    "GuardFactory",
    "NewDirectories",
    "NoForwarding",
    "NoNeedlessTruncation",
    "NoResending",
    "OldSnapshots",
    "PinnedDirectories",
    "PreVoting",
    "SnapshotCommit",
    "SnapshotSpin",
    "TermOfAnswers",
]
