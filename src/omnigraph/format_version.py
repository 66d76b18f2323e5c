"""The version of the stored schema, in a module that loads without the compiler of schemas."""

from typing import Final

IR_VERSION: Final = 5
