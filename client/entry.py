"""Entry point of the console script. Modules take a while to load: Ctrl-C meanwhile ends it as it
would any other program, without a traceback."""

from __future__ import annotations

import gc
import signal


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Nothing of what is loaded becomes garbage; looking for it would take 6 % of `--help`.
    gc.disable()
    from .cli import main as run

    gc.freeze()
    gc.enable()
    # From here on it is an exception, and a command says how it ends.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
