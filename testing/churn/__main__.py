"""`python -m logboat.testing.churn`; in the environment DURATION (seconds, default 60), MODE
(synced or page-cache; default both) and SEED (default 1).

One line of verdict for each mode, the last of it on standard output:

    churn: held | acknowledged=N read=N lost=0 kills=K pauses=P stops=S kills_of_all=A
    churn: violation | ...                                                          exit status 1
    churn: undecided | <why the run could not be finished>                          exit status 1
"""

from __future__ import annotations

import os
import sys

from ...client.failure import Failure

USAGE = 2
INTERRUPTED = 130
MODES = ("synced", "page-cache")


def main() -> int:
    seconds, seed = os.environ.get("DURATION", "60"), os.environ.get("SEED", "1")
    mode = os.environ.get("MODE", "")
    if not seconds.isdecimal() or not seed.isdecimal() or mode not in ("", *MODES):
        print("churn: DURATION and SEED are numbers, MODE is synced or page-cache", file=sys.stderr)
        return USAGE
    results = [_run(int(seconds), each, int(seed)) for each in ([mode] if mode else MODES)]
    return max(results)


def _run(seconds: int, mode: str, seed: int) -> int:
    try:
        from .run import run_churn
    except ImportError as error:
        print(f"churn: {error}; pip install logboat[jepsen]", file=sys.stderr)
        return 1
    from ..local_cluster import NotInTime

    print(f"{seconds} s of churn in {mode} mode, seed {seed}", flush=True)
    try:
        verdict = run_churn(seconds, synced=mode == "synced", seed=seed)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Failure, NotInTime, RuntimeError) as error:
        print(f"churn: undecided | {error}", flush=True)
        return 1
    for complaint in verdict.complaints:
        print(complaint)
    print(verdict.line, flush=True)
    return 0 if verdict.held else 1


if __name__ == "__main__":
    sys.exit(main())
