"""Sequences of a table, of batches or of a Dask collection, and a sample of them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_array

from ..._core.validation import within_floats
from ..._tables.blocks import Blocks
from ..._tables.schema import check_columns_of
from ..._tables.thin import some_rows
from .encoding import PanelEncoder
from .panel import Panel

# Sequences of a stream or collection from which the structure is learned.
MAX_SAMPLE = 20_000

CHECKS = {"dtype": None, "ensure_all_finite": "allow-nan"}


@dataclass(frozen=True)
class Sample:
    """Some sequences, and how many there are in all.

    values: (n, n_slices, n_observed)
    weights: of the sequences of the sample, (n,)
    n_sequences, total: number of all sequences that have a weight, and its sum
    """

    values: np.ndarray
    weights: np.ndarray
    n_sequences: int
    total: float

    @property
    def is_all(self) -> bool:
        """Whether there are no other sequences."""
        return len(self.values) == self.n_sequences


def plain_frame(X):
    """The table, as objects if pandas types of several kinds would not mix.

    scikit-learn turns nullable columns into floats, which labels beside them cannot be.
    """
    kinds = {getattr(dtype, "kind", "O") for dtype in getattr(X, "dtypes", ())}
    mixed = hasattr(X, "iloc") and not kinds <= set("biuf")
    return X.astype(object) if mixed else X


def check_block(block, n_slices: int) -> np.ndarray:
    """Sequences of a block that is elsewhere: validated, and cut into slices."""
    block = plain_frame(check_columns_of(block))
    values = check_array(block, **CHECKS)
    return values.reshape(len(values), n_slices, -1)


def draw_sample(blocks: Blocks, most: int | None = None) -> Sample:
    """Gather at most so many sequences of all blocks, spread evenly over them."""
    sizes = [size or (0, 0.0) for size in blocks.gather(_size)]
    ends = np.cumsum([n for n, _ in sizes], dtype=int)
    if not len(ends) or not ends[-1]:
        raise ValueError("X must have at least one sequence, got none.")
    n_sequences = int(ends[-1])
    chosen = some_rows(n_sequences, n_sequences if most is None else most)
    own = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    starts = np.concatenate([[0], ends[:-1]])
    places = [rows - start for rows, start in zip(own, starts, strict=True)]
    parts = [part for part in blocks.gather(_take, each=places) if part is not None]
    values, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Sample(values, weights, n_sequences, sum(weight for _, weight in sizes))


def encode_block(block, encoder: PanelEncoder) -> Panel:
    """Distinct encoded sequences of a block."""
    values, weights = _present(block)
    with labels_only():
        return encoder.panel(values, weights).merged()


@contextmanager
def labels_only():
    """Say what is wrong with values that cannot be categories."""
    try:
        with within_floats("X"):
            yield
    except TypeError as error:
        raise TypeError(
            "Each value of the X argument must be a string, a number or another label "
            f"that can be told from others, got an error: {error}."
        ) from error


def _present(block):
    """Sequences of a block that have a weight, and their weights."""
    values, weights = block
    if weights is None:
        return values, np.ones(len(values))
    return values[weights > 0], np.asarray(weights, dtype=float)[weights > 0]


def _size(block):
    _, weights = _present(block)
    return len(weights), float(weights.sum())


def _take(block, places):
    values, weights = _present(block)
    return values[places], weights[places]


def keep_block(block):
    """The block itself, so that a stream that can be read once is held."""
    return block
