"""Warnings that point to the user's own line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import joblib
import sklearn

# Code between the user's line and ours: this library, scikit-learn's wrappers of
# methods, joblib's of workers.
_INSIDE = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(__file__).parents[1],
        Path(sklearn.__file__).parent,
        Path(joblib.__file__).parent,
    )
)

# Lists that collect messages, the innermost last; each thread has its own.
_collectors: ContextVar[tuple[list[str], ...]] = ContextVar("_collectors", default=())


@contextmanager
def collect_messages() -> Iterator[list[str]]:
    """Collect the messages of `warn`, which warns all the same."""
    messages: list[str] = []
    token = _collectors.set((*_collectors.get(), messages))
    try:
        yield messages
    finally:
        _collectors.reset(token)


@contextmanager
def unheard() -> Iterator[None]:
    """Neither show nor collect warnings."""
    token = _collectors.set(())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _collectors.reset(token)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the nearest caller outside of this library and what wraps it."""
    for messages in _collectors.get():
        messages.append(message)
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level + 1)
