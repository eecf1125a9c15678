"""Names for clusters: after `logboat profile use NAME` commands need no --url."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from .failure import Failure
from .terminal import emit, say, table

profile = typer.Typer(
    name="profile",
    help="Clusters by name: list, set, use, delete.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME")]


@dataclass(slots=True)
class Profiles:
    """The file, whole."""

    current: str | None = None
    urls: dict[str, str] = field(default_factory=dict)


def profile_file() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "logboat", "profiles.json")


def url_in_use() -> str | None:
    """Of the profile that was chosen, if any."""
    profiles = load_profiles()
    return None if profiles.current is None else profiles.urls.get(profiles.current)


def load_profiles() -> Profiles:
    try:
        with open(profile_file(), encoding="utf-8") as file:
            document = json.load(file)
        return Profiles(
            document["current"], {str(name): str(url) for name, url in document["urls"].items()}
        )
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{profile_file()} cannot be read: {error}") from error


def _save(profiles: Profiles) -> None:
    path = profile_file()
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(asdict(profiles), file, indent=2)
        os.replace(temporary, path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error


@profile.command("list")
def list_profiles() -> None:
    """Show all; the one in use has a star."""
    profiles = load_profiles()
    rows = [
        ("*" if name == profiles.current else "", name, url)
        for name, url in sorted(profiles.urls.items())
    ]
    emit(table(("", "NAME", "URL"), rows))


@profile.command("set")
def set_profile(
    name: Name,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="http://host:port, several with commas.")
    ],
) -> None:
    """Remember a cluster's address under a name, and use it."""
    from .node_api import NodeApi

    profiles = load_profiles()
    profiles.urls[name] = ",".join(NodeApi(url).urls)
    profiles.current = name
    _save(profiles)
    say(f"Commands go to {name} ({profiles.urls[name]}).")


@profile.command()
def use(name: Name) -> None:
    """Have commands go to this cluster from now on."""
    profiles = load_profiles()
    if name not in profiles.urls:
        raise Failure(f"there is no profile {name!r}; `logboat profile set {name} URL` makes it")
    profiles.current = name
    _save(profiles)
    say(f"Commands go to {name} ({profiles.urls[name]}).")


@profile.command()
def delete(name: Name) -> None:
    """Forget a name."""
    profiles = load_profiles()
    if profiles.urls.pop(name, None) is None:
        raise Failure(f"there is no profile {name!r}")
    if profiles.current == name:
        profiles.current = None
    _save(profiles)
    say(f"Forgot {name}.")
