"""/openapi.json: the table of operations as OpenAPI 3.1, made when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from .documents import Error
from .json_schema import Schema, Schemas
from .operations import ALWAYS, JSON, Kinds, Operation, Parameter

VERSION = "3.1.0"


def document(operations: Iterable[Operation], *, version: str) -> dict[str, Any]:
    """`version`: of the product."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        entry = _operation(operation, schemas)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": VERSION,
        "info": {
            "title": "Logboat",
            "version": version,
            "description": "Any node answers any request.",
        },
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.components.items()))},
    }


def _operation(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    error = {JSON: Error}
    answers = {
        str(status): _answer(answer.text, answer.kinds, schemas)
        for status, answer in operation.answers.items()
    }
    for status in sorted({*ALWAYS, *operation.errors}):
        answers.setdefault(str(status), _answer(HTTPStatus(status).phrase, error, schemas))
    entry: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.text,
        "responses": answers,
    }
    parameters = (*operation.path_parameters, *operation.parameters)
    if parameters:
        entry["parameters"] = [_parameter(one, schemas) for one in parameters]
    if operation.bodies:
        entry["requestBody"] = {"required": True, "content": _content(operation.bodies, schemas)}
    return entry


def _answer(text: str, kinds: Kinds, schemas: Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": text}
    if kinds:
        answer["content"] = _content(kinds, schemas)
    return answer


def _content(kinds: Kinds, schemas: Schemas) -> dict[str, dict[str, Schema]]:
    return {media_type: {"schema": schemas.of(kind)} for media_type, kind in kinds.items()}


def _parameter(parameter: Parameter, schemas: Schemas) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.text,
        "schema": schemas.of(parameter.kind),
    }
