"""Warnings that point to the user's own line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

# Code between the user's line and ours: this library, scikit-learn's wrappers of
# methods, joblib's of workers.
_INSIDE = tuple(
    f"{Path(place).parent}{os.sep}"
    for place in (__file__, sklearn.__file__, joblib.__file__)
)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the nearest caller outside of this library and what wraps it."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level + 1)
