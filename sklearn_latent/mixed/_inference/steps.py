"""Steps between slices: transitions of the joint states of some latents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


class Steps:
    """A transition matrix without the rows that are equal to others.

    Latents that nothing follows in the next slice have states of the same row, often
    many: the chain of 5 latents of which 2 have followers has 12 rows for 480 states.

    matrix: P(state | row), (n_rows, n_states)
    rows: row of each state, (n_states,)
    """

    def __init__(self, matrix, rows=None):
        self.matrix, self._rows = matrix, rows
        self._indicators = None
        if len(matrix) < matrix.shape[1]:
            self._indicators = np.eye(len(matrix))[rows]

    def gathered(self, states) -> np.ndarray:
        """Probabilities of the rows, from those of states."""
        return states if self._indicators is None else states @ self._indicators

    def forward(self, states, out=None) -> np.ndarray:
        """Probabilities of the next states."""
        return np.dot(self.gathered(states), self.matrix, out=out)

    def back(self, values, out=None) -> np.ndarray:
        """What is expected of values of the next states, given each state."""
        if self._indicators is None:
            return np.dot(values, self.matrix.T, out=out)
        return np.dot(values, self.matrix.T).take(self._rows, 1, out, mode="clip")

    @property
    def whole(self) -> np.ndarray:
        """The matrix with all rows."""
        return self.matrix if self._rows is None else self.matrix[self._rows]


@dataclass(frozen=True)
class Chain:
    """The joint states of some latents: how they start, and the steps between slices.

    start: P(state in the first slice), (n_states,)
    steps: those of each epoch; with one epoch all slices have the same
    epoch: number of the epoch of each slice, increasing
    """

    start: np.ndarray
    steps: list[Steps]
    epoch: list[int]

    def into(self, t: int) -> Steps:
        """Steps from the slice before into a slice."""
        return self.steps[self.epoch[t]]

    def inner(self, e: int) -> slice:
        """Slices of an epoch less the first of all, counted from that one on."""
        first = self.epoch.index(e)
        return slice(max(first, 1) - 1, first + self.epoch.count(e) - 1)
