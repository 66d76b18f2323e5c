"""The folder of an operator, and its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

HOME_VARIABLE: Final = "OMNIGRAPH_HOME"
_DEFAULT_FOLDER: Final = ".omnigraph"
CONFIG_NAME: Final = "config.yaml"
CREDENTIALS_NAME: Final = "credentials"


def find_home(environment: Mapping[str, str]) -> Path | None:
    """The folder of the operator; None for a user without a home."""
    given = environment.get(HOME_VARIABLE)
    if given:
        return expand_user(given, environment)
    home = _find_user_home(environment)
    return None if home is None else home / _DEFAULT_FOLDER


def expand_user(path: str, environment: Mapping[str, str]) -> Path:
    """A path whose leading `~` stands for the home of the user."""
    home = _find_user_home(environment)
    if home is not None and (path == "~" or path.startswith("~/")):
        return home / path[2:]
    return Path(path)


def _find_user_home(environment: Mapping[str, str]) -> Path | None:
    if environment.get("HOME"):
        return Path(environment["HOME"])
    # The database of users knows a home also where the variable is not set.
    found = os.path.expanduser("~")
    return None if found == "~" else Path(found)
