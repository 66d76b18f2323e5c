"""Translates failures of Lance into errors of this library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from omnigraph.errors import StorageError, StorageFullError, StorageRefusedError
from omnigraph.storage.objects.remote_store import reason_of

# Where in its own sources Lance noticed the error: noise outside Lance.
_RUST_LOCATION = re.compile(r"(, location: |, )?/\S+\.rs:\d+:\d+")
_REASON_MAX = 500
# Lance gives no error numbers.
_NO_ROOM = re.compile(r"No space left on device|[Qq]uota exceeded")
_PANIC_HINT = "a file of the table is damaged: `omnigraph check --deep` names it"


@contextmanager
def translate_lance_errors(operation: str, path: str) -> Iterator[None]:
    """Turn whatever Lance raises into a StorageError that names the table and the operation."""
    try:
        yield
    except StorageError:
        raise
    except (ValueError, TypeError, NotImplementedError) as error:
        raise StorageRefusedError(operation, path, _format_reason(error)) from error
    except (OSError, RuntimeError, pa.ArrowException) as error:
        reason = _format_reason(error)
        kind = StorageFullError if _NO_ROOM.search(reason) else StorageError
        raise kind(operation, path, reason) from error
    except BaseException as error:
        # A panic of Rust code derives from BaseException and would pass every `except Exception`.
        if type(error).__name__ == "PanicException":
            reason = f"Lance panicked: {_format_reason(error)}"
            raise StorageRefusedError(operation, path, reason, hint=_PANIC_HINT) from error
        raise


def _format_reason(error: BaseException) -> str:
    return _RUST_LOCATION.sub("", reason_of(error))[:_REASON_MAX] or type(error).__name__
