"""The codes on which clients branch, in a module that loads without the errors."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """The closed list of codes."""

    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    TOO_MANY_REQUESTS = "too_many_requests"
    INTERNAL = "internal"
