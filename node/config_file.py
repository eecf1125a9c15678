"""`node.toml`: Kafka's names as keys, flat (`"log.roll.ms" = 1`) or nested (`[log.roll]`).

Lists become comma-separated text, as in Kafka's own files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..metadata.config_definition import Definition
from .config import ConfigRefused
from .settings import SETTINGS


def read_settings(text: str) -> dict[str, str]:
    """All settings of the file by Kafka's names. Raises ConfigRefused with one sentence."""
    import tomllib  # Only a process started from a file pays for it.

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigRefused(f"not valid TOML: {error}") from error
    settings: dict[str, str] = {}
    for name, value in _flat(document, ""):
        if name in settings:
            raise ConfigRefused(f"{name} is given twice")
        settings[name] = _as_text(name, value)
    return settings


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        return ",".join(_as_text(name, item) for item in value)
    raise ConfigRefused(f"{name}: a {type(value).__name__} is no value of a setting")


def render_defaults() -> str:
    """Every setting with its default as a valid `node.toml`, for `--print-config`."""
    return "\n".join(_rendered(setting) for setting in SETTINGS.values())


def _rendered(setting: Definition) -> str:
    # Quoted keys: TOML would otherwise not allow both log.retention.ms and log.retention.
    if setting.default is None:
        return f'# {setting.doc}\n# "{setting.name}" =\n'
    return f'# {setting.doc}\n"{setting.name}" = {_toml(setting.default)}\n'


def _toml(text: str) -> str:
    if text in ("true", "false") or text.lstrip("-").replace(".", "", 1).isdecimal():
        return text
    return f'"{text}"'
