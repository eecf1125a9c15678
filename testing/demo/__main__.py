"""`python -m logboat.testing.demo`; RECORDS (default 200,000) and SABOTAGE=1 in the environment.

The last line of standard output is the verdict, and nothing follows it:

    demo: held | acknowledged=N read=N lost=0 leaderless_s=X rejoin_s=Y      exit status 0
    demo: violation | acknowledged=N read=M lost=K                          exit status 1
    demo: undecided | <why the run could not be finished>                   exit status 1
"""

from __future__ import annotations

import os
import sys

from ...client.failure import Failure

USAGE = 2
INTERRUPTED = 130


def main() -> int:
    records = os.environ.get("RECORDS", "200000")
    if not records.isdecimal() or int(records) < 100:
        print(f"demo: RECORDS is {records!r}; it takes a number from 100", file=sys.stderr)
        return USAGE
    try:
        from .run import run_demo
    except ImportError as error:
        print(f"demo: {error}; pip install logboat[jepsen]", file=sys.stderr)
        return 1
    from ..local_cluster import NotInTime

    try:
        verdict = run_demo(int(records), sabotage=os.environ.get("SABOTAGE", "") not in ("", "0"))
        held, line = verdict.held, verdict.line
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Failure, NotInTime, RuntimeError) as error:
        held, line = False, f"demo: undecided | {error}"
    # Clients and nodes are gone: nobody is left who could write after this.
    print(line, flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
