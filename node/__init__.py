"""One process: configuration, listeners, one handler file for each Kafka API, lifecycle.

`run.py` is the whole process (`run_node`); `__main__.py` gives it the real clock, disk, chance
and loop. A request goes `connection.py` -> `pipeline.py` -> `dispatch.py` -> `handlers/<api>.py`,
and its answer back the same way. The handlers ask the parts below and decide nothing themselves.
"""
