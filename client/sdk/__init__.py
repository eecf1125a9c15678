"""The Python client: `async with Client(...)`, or `with SyncClient(...)` where there is no loop.

It speaks HTTP to any node and needs nothing beyond aiohttp and orjson. What holds everywhere:

* **one deadline per call** (`request_timeout`, `delivery_timeout`), never a number of attempts;
* *did not happen* and *may have happened* are different exceptions: what may have happened is tried
  again only where a repetition is recognised;
* everything that waits is bounded: bytes in a producer's buffer, records in a reader's queue;
* nothing begins at import or in a constructor: no thread, no connection.
"""
