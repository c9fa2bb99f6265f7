"""What a network with latents says about sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._answers.protocol import Network
from .._core.validation import (
    MOST_COLUMNS,
    check_count,
    check_numbers,
    check_sample_weight,
)
from ._emissions.base import Emission
from ._emissions.kinds import check_values
from ._forecast import Forecast
from ._graph import TemporalGraph
from ._inference.ahead import look_ahead
from ._inference.expectation import (
    ChainCounts,
    Expectation,
    expectation,
    most_probable_states,
    sequence_log_likelihood,
    warn_if_approximate,
)
from ._inference.patterns import ChainData
from ._panels.panel import is_known


class SequenceModel(Network):
    """Likelihoods, states, forecasts and missing values of sequences.

    A subclass has the graph and the tables.
    """

    graph: TemporalGraph
    emissions: list[Emission]

    @property
    def n_observed(self) -> int:
        """Number of features per slice."""
        return self.graph.n_observed

    @property
    def _parents(self) -> np.ndarray:
        """Latent that each feature measures, -1 for none."""
        measured = self.graph.structure.any(axis=0)
        if not self.graph.n_latents:
            return np.full(self.graph.n_observed, -1)
        return np.where(measured, self.graph.structure.argmax(axis=0), -1)

    def log_likelihood(self, codes: ArrayLike) -> np.ndarray:
        """Log-likelihood of each sequence, in nats.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number; -1 is missing and is integrated out.

        Returns
        -------
        log_likelihood : ndarray of shape (n,)
            A lower bound where inference is factored.
        """
        warn_if_approximate(self)
        return sequence_log_likelihood(self, self._data(codes))

    def posterior(self, codes: ArrayLike) -> list[np.ndarray]:
        """P(state | whole sequence) of each latent in each slice.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.

        Returns
        -------
        posterior : list of ndarray of shape (n, n_slices, cardinality)
            One array per latent.
        """
        warn_if_approximate(self)
        return self._expect(self._data(codes)).states

    def expected_counts(
        self, codes: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ChainCounts:
        """Expected counts of all tables.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the sequences.

        Returns
        -------
        counts : ChainCounts
            In the shape of the tables; counts of several panels add up.
        """
        warn_if_approximate(self)
        return self._expect(self._data(codes, sample_weight)).counts

    def viterbi(self, codes: ArrayLike, *, return_log_probability: bool = False) -> Any:
        """Most probable states of all latents in all slices, taken together.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.
        return_log_probability : bool, default=False
            Whether to return log P(states, sequence) too.

        Returns
        -------
        states : ndarray of int of shape (n, n_slices, n_latents)
            The states.
        log_probability : ndarray of shape (n,)
            Only with `return_log_probability`.
        """
        warn_if_approximate(self)
        states, log_probability = most_probable_states(self, self._data(codes))
        return (states, log_probability) if return_log_probability else states

    def predictive(self, codes: ArrayLike) -> list[np.ndarray]:
        """P(category | all other values of the sequence) where a value is missing.

        For a value that is not missing it is what a further reading of the feature
        would show.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.

        Returns
        -------
        probabilities : list of ndarray of shape (n, n_slices, n_categories)
            One array per feature.
        """
        codes = self._check(codes)
        posterior = self.posterior(codes)
        return self._predicted(posterior, codes)

    def _predicted(self, posterior, codes) -> list[np.ndarray]:
        """What each value should be, given states of the latents."""
        alone = np.ones((*codes.shape[:2], 1))
        return [
            emission.predicted(posterior[j] if j >= 0 else alone, codes[:, :, f])
            for f, (j, emission) in enumerate(
                zip(self._parents, self.emissions, strict=True)
            )
        ]

    def forecast(self, codes: ArrayLike, n_steps: int = 1) -> Forecast:
        """What to expect of the slices after the last recorded one of each sequence.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.
        n_steps : int, default=1
            Number of slices.

        Returns
        -------
        forecast : Forecast
            Distributions of features and latents, and most probable categories.
        """
        codes = self._check(codes)
        n_steps = check_count("n_steps", n_steps, 1, MOST_COLUMNS)
        warn_if_approximate(self)
        last, states, found = look_ahead(self, codes, n_steps)
        best = most_probable(self.emissions, found)
        return Forecast(
            found,
            np.stack(best, axis=2),
            states,
            last[:, None] + np.arange(1, n_steps + 1),
            [f"x{f}" for f in range(self.n_observed)],
            np.arange(len(codes)),
            [emission.is_numeric for emission in self.emissions],
        )

    def impute(self, codes: ArrayLike) -> np.ndarray:
        """Fill missing values with the most probable category.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.

        Returns
        -------
        filled : ndarray of int of the same shape
            Without missing values; all others as they were.
        """
        codes = self._check(codes)
        best = most_probable(self.emissions, self.predictive(codes))
        return np.where(is_known(codes), codes, np.stack(best, axis=2))

    def _expect(self, data: ChainData) -> Expectation:
        """States of the latents and expected counts of all tables."""
        return expectation(self, data)

    def _data(self, codes, sample_weight=None) -> ChainData:
        """Validate codes and find their patterns."""
        codes = self._check(codes)
        weights = check_sample_weight(sample_weight, len(codes))
        return ChainData.of(codes, self.graph.structure, weights)

    def _check(self, codes) -> np.ndarray:
        """Validate codes."""
        codes = check_numbers("codes", codes, dtype=None)
        if codes.ndim != 3 or codes.shape[2] != self.n_observed:
            raise ValueError(
                "codes must have shape (n, n_slices, n_observed) with n_observed="
                f"{self.n_observed}, got shape {codes.shape}."
            )
        return check_values(codes, self.emissions)


def most_probable(emissions, found) -> list[np.ndarray]:
    """The most probable category, or the mean, by feature."""
    return [
        one[..., 0] if emission.is_numeric else one.argmax(axis=-1)
        for emission, one in zip(emissions, found, strict=True)
    ]
