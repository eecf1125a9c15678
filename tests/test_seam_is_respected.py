"""DESIGN 2: the product reaches time, chance, disk and threads only through the seam.

Looked for in the source, because `datetime.now` and what a module does at import cannot be caught
while a simulation runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PARTS = ("wire", "raftlog", "metadata", "partitions", "groups", "node")

EXEMPT = ("node/__main__.py", "node/http/")
"""The command line makes the real things; HTTP is off in simulation (DESIGN 2)."""

ALLOWED_OF_OS = {"path.isfile"}
"""pysyncobj is given an `os` of ours with this one name (RULES E4)."""

FORBIDDEN_MODULES = {
    "concurrent": "threads",
    "fcntl": "the disk",
    "ftplib": "the network",
    "http.client": "the network",
    "io": "the disk",
    "mmap": "the disk",
    "multiprocessing": "processes",
    "os": "the disk",
    "pathlib": "the disk",
    "queue": "threads",
    "sched": "time",
    "secrets": "chance",
    "select": "the network",
    "selectors": "the network",
    "shutil": "the disk",
    "signal": "the process",
    "subprocess": "processes",
    "tempfile": "the disk",
    "threading": "threads",
    "time": "time",
    "urllib.request": "the network",
    "weakref": "collection",
}

FORBIDDEN_CALLS = {
    "asyncio.all_tasks": "sees the tasks of every host",
    "asyncio.get_event_loop": "take the running loop",
    "asyncio.new_event_loop": "take the running loop",
    "asyncio.run": "only the command line runs a loop",
    "asyncio.to_thread": "use seam.offload",
    "breakpoint": "debugging",
    "datetime.date.today": "wall time comes from the Clock",
    "datetime.datetime.now": "wall time comes from the Clock",
    "datetime.datetime.today": "wall time comes from the Clock",
    "datetime.datetime.utcnow": "wall time comes from the Clock",
    "functools.cache": "module state shared by all hosts",
    "functools.lru_cache": "module state shared by all hosts",
    "hash": "differs between processes",
    "id": "differs between runs",
    "input": "the process",
    "logging.handlers.QueueListener": "threads",
    "open": "the disk",
    "random.SystemRandom": "chance is handed in",
    "socket.create_connection": "the network",
    "socket.getaddrinfo": "the network",
    "socket.gethostname": "the network",
    "socket.socket": "the network",
    "uuid.uuid1": "chance is handed in",
    "uuid.uuid4": "chance is handed in",
}
"""By full name; aliases of imports are resolved."""

PURE_FUNCTIONS_MAY_BE_CACHED = ("wire/",)
"""Compiled codecs are the same for every host."""

IO_METHODS_ALLOWED = {"io.BytesIO"}


def product_files() -> list[Path]:
    return sorted(
        path
        for part in PARTS
        for path in (ROOT / part).rglob("*.py")
        if not str(path.relative_to(ROOT)).startswith(EXEMPT)
    )


def reaches(tree: ast.Module, file: str) -> Iterator[tuple[int, str]]:
    """Line and reason of each forbidden reach."""
    names = imported_names(tree)
    for local in locally_bound(tree):
        names.setdefault(local, f"this module's {local}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            full = full_name(node, names)
            reason = None if full is None else why_forbidden(full, file)
            if reason is not None:
                yield node.lineno, f"{full}: {reason}"
        elif isinstance(node, ast.Call) and not node.args and not node.keywords:
            if ast.unparse(node.func).split(".")[-1] == "Random":
                yield node.lineno, "Random() without a seed: chance is handed in"
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "random":
            for alias in node.names:
                if alias.name != "Random":
                    yield node.lineno, f"random.{alias.name}: chance is handed in"
    for node in tree.body:
        yield from module_state(node)


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Local name -> full name of what absolute imports bind."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def locally_bound(tree: ast.Module) -> list[str]:
    """Names that the module gives a meaning of its own; then they are no builtins."""
    bound = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return bound + [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]


def full_name(node: ast.Name | ast.Attribute, names: dict[str, str]) -> str | None:
    """`datetime.now` as `datetime.datetime.now`; None for what no import or builtin explains."""
    attributes: list[str] = []
    expression: ast.expr = node
    while isinstance(expression, ast.Attribute):
        attributes.insert(0, expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return None
    base = names.get(expression.id)
    if base is None:
        builtin = expression.id in FORBIDDEN_CALLS and not attributes
        return expression.id if builtin and isinstance(expression.ctx, ast.Load) else None
    return ".".join([base, *attributes])


def why_forbidden(full: str, file: str) -> str | None:
    if full in IO_METHODS_ALLOWED:
        return None
    if full.startswith("functools.") and file.startswith(PURE_FUNCTIONS_MAY_BE_CACHED):
        return None
    if full in FORBIDDEN_CALLS:
        return FORBIDDEN_CALLS[full]
    module, _, rest = full.partition(".")
    if module == "random" and rest and rest != "Random":
        return "chance is handed in"
    if module == "os" and (not rest or rest in ALLOWED_OF_OS or rest == "path"):
        return None
    for forbidden, what in FORBIDDEN_MODULES.items():
        # The bare module is judged by what is used of it, so that one mistake is told once.
        if full.startswith(f"{forbidden}."):
            return f"{what} comes through the seam"
    return None


def module_state(node: ast.stmt) -> Iterator[tuple[int, str]]:
    """Objects made at import that belong to one host and would be shared by all."""
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(value, ast.Call):
        return
    called = ast.unparse(value.func)
    if called.split(".")[-1] in {
        "ContextVar",
        "Queue",
        "Lock",
        "Event",
        "Semaphore",
        "WeakSet",
        "WeakKeyDictionary",
        "WeakValueDictionary",
        "Counter",
        "defaultdict",
        "deque",
        "count",
        "Random",
    }:
        yield node.lineno, f"{called}(...) at import: all hosts of a simulation would share it"


def test_the_product_respects_the_seam() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {reason}"
        for path in product_files()
        for line, reason in reaches(
            ast.parse(path.read_text(), str(path)), str(path.relative_to(ROOT))
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()",
        "import time as t\nt.monotonic()",
        "from time import monotonic\nmonotonic()",
        "import random\nrandom.random()",
        "from random import choice",
        "import random\nclass A:\n    dice = random.Random()",
        "from uuid import uuid4\nuuid4()",
        "import uuid\nuuid.uuid4()",
        "import secrets\nsecrets.token_bytes(3)",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "import os\nos.fsync(3)",
        "import os.path\nos.path.getsize('x')",
        "from os import urandom\nurandom(3)",
        "open('x')",
        "import asyncio\nasyncio.to_thread(print)",
        "import threading\nthreading.Lock()",
        "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor()",
        "def f(x): return id(x)",
        "def f(x): return sorted(x, key=hash)",
        "import functools\n@functools.lru_cache\ndef f(): ...",
        "import itertools\nids = itertools.count()",
        "import asyncio\nqueue: asyncio.Queue = asyncio.Queue()",
    ],
)
def test_each_reach_around_the_seam_is_seen(source: str) -> None:
    assert list(reaches(ast.parse(source), "node/x.py"))


@pytest.mark.parametrize(
    "source",
    [
        "from random import Random\ndef f(rng: Random): return rng.random()",
        "import random\ndef f(rng: random.Random): return rng.random()",
        "import asyncio\nasyncio.get_running_loop().time()",
        "import uuid\nuuid.UUID(int=0)",
        "def f(disk): return disk.open('x')",
        "class A:\n    def id(self): return self.id",
        "def f(ids): return [id for id in ids]",
        "class A:\n    def __hash__(self): return 1",
        "import io\nio.BytesIO()",
        "from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC)",
    ],
)
def test_what_is_allowed_is_not_seen(source: str) -> None:
    assert list(reaches(ast.parse(source), "node/x.py")) == []


def test_there_is_something_to_look_at() -> None:
    assert len(product_files()) > 20
