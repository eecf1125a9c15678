"""The OpenAPI documents that the HTTP API is held against; absent on most machines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

_DATA = Path(os.environ.get("LOGBOAT_TEST_DATA", Path(__file__).parents[2] / ".." / "shared"))

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def document(name: str) -> Path:
    found = _DATA / "http" / name
    if not found.exists():
        pytest.skip(f"{name} is not here")
    return found


class Operations:
    """Of one document, by "GET /path"; remembers which were asked."""

    def __init__(self, schema: Any) -> None:
        self._by_label = {found.ok().label: found.ok() for found in schema.get_all_operations()}
        self.asked: set[str] = set()

    @classmethod
    def of(cls, path: Path) -> Operations:
        return cls(schemathesis.openapi.from_path(path))

    @property
    def labels(self) -> list[str]:
        return list(self._by_label)

    def __getitem__(self, label: str) -> Any:
        self.asked.add(label)
        return self._by_label[label]

    def call(self, base: str, label: str, status: int, body: Any = None, **how: Any) -> Any:
        """The response, of this status and as the document has it. Blocks."""
        given = {} if body is None else {"body": body, "media_type": how.pop("media_type", None)}
        case = self[label].Case(**given, **how)
        response = case.call(base_url=base)
        assert response.status_code == status, (label, response.status_code, response.text)
        case.validate_response(response, checks=CHECKS)
        return response
