"""What segments are made of."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

RowIds: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.int64]
