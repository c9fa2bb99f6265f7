"""What a network says of rows: densities, expected values, classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtr, softmax
from sklearn.utils import check_array

from .._core.validation import within_floats
from ._background import Background
from ._bent_inference import expect_each, infer
from ._conditional import Joint, condition, leave_one_out
from ._densities import Densities
from ._network_checks import within_range
from ._statistics import LOG_2_PI
from ._table_margins import Margins, atom_columns, expected_values, to_scores

# Largest value of the data: squares, and products of variances, must not overflow.
LARGEST = 1e100


class RowInference(Densities):
    """The part of a model object that answers questions about rows."""

    margins: Margins
    background: Background | None
    class_weight: NDArray[np.float64]
    classes: tuple[RowInference, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes of rows."""
        return len(self.class_weight)

    @property
    def is_jointly_gaussian(self) -> bool:
        """Whether all nodes together have a multivariate normal distribution."""
        return super().is_jointly_gaussian and not self.classes

    @within_range
    def log_likelihood(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-likelihood of each row over its observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Exact for complete rows without latents, and for linear links with additive
            noise; else an estimate by importance sampling, and at least the bound of
            mean field.
        """
        X = self._check(X)
        Z, log_slope = to_scores(self.margins, X)
        atoms = atom_columns(self.margins)
        cells = [(j, *margin.intervals(X[:, j])) for j, margin in atoms.items()]
        found = logsumexp(self._class_log_densities(Z, cells), axis=1) + log_slope
        if self.background is None:
            return found
        return self.background.mixed(found, X, self.margins)

    @property
    def _parts(self) -> tuple[RowInference, ...]:
        """Networks of the classes, or the only one."""
        return self.classes or (self,)

    def _class_log_densities(self, Z, cells=()) -> NDArray[np.float64]:
        """Log of P(class) and density of each row in it, (n_samples, n_classes)."""
        log_densities = [own._density(Z, cells) for own in self._parts]
        return np.column_stack(log_densities) + np.log(self.class_weight)

    def _density(self, Z, cells=()) -> NDArray[np.float64]:
        """Log-likelihood of scores.

        cells: columns with atoms, rows that have one, where their intervals of scores
        begin and end
        """
        simple = self.n_latents == 0 and not np.isnan(Z).any()
        if simple:
            density = self._family_log_likelihoods(Z).sum(axis=1)
        else:
            density = self._infer(Z)[1]
        for column, rows, low, high in cells:
            # Given those before it in the graph, an atom is any score of its interval.
            before = Z[rows]
            if simple:
                mean = self.conditional_means(before)[:, column]
                variance = np.broadcast_to(self.noise_variance[column], mean.shape)
            else:
                order = self.topological_order[self.topological_order < self.n_features]
                before[:, order[int(np.argmax(order == column)) :]] = np.nan
                means, _, variances = self._infer(before)
                mean, variance = means[:, column], variances[:, column]
            density[rows] += _log_interval(Z[rows, column], low, high, mean, variance)
        return density

    def _infer(self, Z):
        """Expected scores, log-likelihoods and variances of incomplete rows."""
        if self.is_jointly_gaussian:
            return condition(self._joint(), Z)
        return infer(self, Z)

    def _check(self, X) -> np.ndarray:
        """Rows as an array of numbers with a column per feature."""
        with within_floats("X"):
            X = check_array(
                X,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=0,
                ensure_min_features=0,
                input_name="X",
            )
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have one column per feature, {self.n_features}, got shape "
                f"{X.shape}."
            )
        check_size(X)
        return X

    def _joint(self) -> Joint:
        return Joint(self.weights, self.intercept, self.noise_variance)

    @within_range
    def expectation(self, X: ArrayLike) -> NDArray[np.float64]:
        """Complete the rows: expected value of every node given the observed ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        completed : ndarray of shape (n_samples, n_nodes)
            Observed entries as they are, expectations elsewhere: of the values, not
            of their scores.
        """
        X = self._check(X)
        missing = np.isnan(X)
        if self.n_latents == 0 and not missing.any():
            return np.array(X, dtype=float)
        Z = to_scores(self.margins, X)[0]
        completed = np.zeros((len(Z), self.n_nodes))
        for weight, own in zip(self._shares(Z).T, self._parts, strict=True):
            mean, _, variance = own._infer(Z)
            values = expected_values(self.margins, mean, variance, missing)
            completed += weight[:, None] * values
        # What was observed stays as it is, to the last bit.
        completed[:, : self.n_features][~missing] = X[~missing]
        return completed

    @within_range
    def class_posterior(self, X: ArrayLike) -> NDArray[np.float64]:
        """P(class) given the observed values of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        posterior : ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        return self._shares(to_scores(self.margins, self._check(X))[0])

    def _shares(self, Z) -> NDArray[np.float64]:
        """P(class) of each row of scores."""
        if not self.classes:
            return np.ones((len(Z), 1))
        return softmax(self._class_log_densities(Z), axis=1)

    def posterior(self, X: ArrayLike) -> NDArray[np.float64]:
        """Expected values of the latents given the observed values of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        mean : ndarray of shape (n_samples, n_latents)
            Exact for linear links with additive noise, else by mean field.
        """
        return self.expectation(X)[:, self.n_features :]

    @within_range
    def leave_one_out(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict each feature from the other observed values of its row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        predicted : ndarray of shape (n_samples, n_features)
            Expected values; a missing value is predicted from all observed ones.
        """
        Z = to_scores(self.margins, self._check(X))[0]
        everywhere = np.ones(Z.shape, dtype=bool)
        each = [own._without_each(Z) for own in self._parts]
        expected = [expected_values(self.margins, *own, everywhere) for own in each]
        if not self.classes:
            return expected[0]
        logs = []
        for log_density, moments in zip(
            self._class_log_densities(Z).T, each, strict=True
        ):
            own = np.where(np.isnan(Z), 0.0, _log_normal(Z, *moments))
            logs.append(log_density[:, None] - own)
        return (softmax(logs, axis=0) * expected).sum(axis=0)

    def _without_each(self, Z) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of scores given the others of their rows."""
        if self.is_jointly_gaussian:
            return leave_one_out(self._joint(), Z)
        return expect_each(self, Z)


def _log_normal(x, mean, variance) -> np.ndarray:
    """Log-density of normal distributions."""
    return -0.5 * (LOG_2_PI + np.log(variance) + (x - mean) ** 2 / variance)


def _log_interval(score, low, high, mean, variance) -> np.ndarray:
    """What the probability of an interval adds to the log-likelihood of its score.

    That is, to the density times the width that the interval has to begin with.
    """
    even = np.log(ndtr(high) - ndtr(low)) - _log_normal(score, 0.0, 1.0)
    low, high = ((end - mean) / np.sqrt(variance) for end in (low, high))
    # From the end where probabilities keep their digits.
    low, high = np.where(low > 0.0, [-high, -low], [low, high])
    with np.errstate(divide="ignore"):
        less = np.exp(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0))
        probability = log_ndtr(high) + np.log1p(-less)
    return probability - _log_normal(score, mean, variance) - even


def check_size(X) -> None:
    """Refuse values whose squares overflow."""
    size = np.nanmax(np.abs(X), initial=0.0)
    if size > LARGEST:
        raise ValueError(
            f"X must hold values up to {LARGEST:g} in size, whose squares can be "
            f"summed, got {size:g}."
        )
