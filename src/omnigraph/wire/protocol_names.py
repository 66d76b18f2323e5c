"""What both ends of a connection call things: media types, headers, the version of the contract.

Without models, so that a client that needs only the names loads nothing else.
"""

from __future__ import annotations

from typing import Final

# The version of the reference whose clients are served: they compare its first two numbers.
REFERENCE_VERSION: Final = "0.10.0"

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"
ARROW: Final = "application/vnd.apache.arrow.stream"

IF_COMMIT_HEADER: Final = "Omnigraph-If-Graph-Commit"
COMMIT_HEADER: Final = "Omnigraph-Graph-Commit"
# What the schema of Arrow rows has of a page: its cursor and the number of all rows, as JSON.
PAGE_METADATA: Final = b"omnigraph.page"
