"""What users touch: the `logboat` command line and, later, the HTTP client library.

This part talks HTTP and starts `python -m logboat.node` as processes; it imports nothing of the
node, so that `logboat --help` costs an interpreter and typer, and a client never drags in a
broker. It is no node either: time, processes and files are the machine's own here, not the seam's.
"""
