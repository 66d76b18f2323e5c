"""Where the program `omnigraph` begins: before any module of a command is loaded."""

from __future__ import annotations

import sys
from typing import Final

# What shells report of a program that Ctrl-C ended.
_INTERRUPTED: Final = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, also while its modules are being loaded."""
    try:
        from omnigraph.cli import app

        app.main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
