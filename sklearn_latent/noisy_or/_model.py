"""What the noisy-or estimators share: binary input, inference and export."""

from __future__ import annotations

from math import floor
from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import BaseLatentModel
from ._patterns import Patterns

__all__ = ["NoisyOrModel", "binarize_rows", "check_flags"]

# Values that are turned into binary ones at a time, 32 MB as bool, and limits of the
# number of rows; multiples of 64 keep the bit-packed words full.
BATCH_VALUES = 2**25
BATCH_ROWS = 2**13, 2**17


def check_binarize(threshold) -> None:
    """Refuse thresholds that are neither None nor a finite number."""
    if threshold is not None and not (
        isinstance(threshold, Real) and np.isfinite(float(threshold))
    ):
        raise ValueError(
            f"binarize must be a finite number or None, got {threshold!r}."
        )


def check_flags(estimator, *names) -> None:
    """Refuse parameters that are neither True nor False."""
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}.")


def binarize_rows(X, threshold: float | None) -> np.ndarray:
    """Turn validated rows into binary ones.

    Parameters
    ----------
    X : ndarray or csr matrix of shape (n_samples, n_features)
        Rows; NaN is missing.

    threshold : float or None
        Values above it are on; None: values must be 0 or 1 already.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_features)
        Boolean if nothing is missing, else float with values 0, 1 and NaN.
    """
    if sparse.issparse(X):
        if threshold is not None and threshold < 0:
            raise ValueError(
                "binarize must be at least 0 for sparse X, because the values that "
                f"are not stored count as off; got {threshold!r}."
            )
        X = X.astype(np.float64, copy=False) if X.dtype == bool else X
        stored = binarize_rows(X.data, threshold)
        return sparse.csr_array((stored, X.indices, X.indptr), X.shape).toarray()
    if X.dtype == bool and (threshold is None or 0 <= threshold < 1):
        return X
    if X.dtype.kind in "iu" and threshold is not None:
        # A comparison with a float would turn every value into one, and NumPy cannot
        # compare with a number beyond the type.
        limits = np.iinfo(X.dtype)
        if not limits.min <= threshold <= limits.max:
            return np.full(X.shape, threshold < limits.min)
        return floor(threshold) < X
    missing = np.isnan(X) if X.dtype.kind == "f" else np.zeros((), dtype=bool)
    if threshold is None:
        valid = (X == 0) | (X == 1) | missing
        if not valid.all():
            raise ValueError(
                "X must hold only 0 and 1 (and NaN for missing) when binarize=None, "
                f"got the value {X[~valid][0]:g}."
            )
        threshold = 0.5
    on = float(threshold) < X
    return np.where(missing, np.nan, on) if missing.any() else on


class NoisyOrModel(BaseLatentModel):
    """Base class of the estimators whose fitted model is a `NoisyOrNetwork`.

    A subclass has a parameter ``binarize`` and ends its ``fit`` with
    ``_store(network)``.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _check_X(self, X, *, reset=False):
        """Validate `X`; sparse input becomes CSR, NaN is allowed."""
        check_binarize(self.binarize)
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite="allow-nan",
        )
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must hold numbers, got the type {X.dtype}.")
        return X

    def _row_slices(self, X):
        """Slices of `X` that keep memory bounded."""
        low, high = BATCH_ROWS
        wanted = BATCH_VALUES // X.shape[1] // 64 * 64
        return gen_batches(X.shape[0], int(np.clip(wanted, low, high)))

    def _by_rows(self, X, function):
        """Apply a function of binary rows to `X`, batch by batch."""
        check_is_fitted(self, "network_")
        X = self._check_X(X)
        return np.concatenate(
            [
                function(binarize_rows(X[rows], self.binarize))
                for rows in self._row_slices(X)
            ]
        )

    def _patterns(self, X, weights):
        """Collapse the rows, batch by batch."""
        parts = []
        for where in self._row_slices(X):
            rows = binarize_rows(X[where], self.binarize)
            parts.append(Patterns.of(rows, None if weights is None else weights[where]))
        return Patterns.merge(parts)

    def _store(self, network):
        """Set the fitted attributes that describe the network."""
        self.network_ = network
        self.prior_ = network.prior
        self.failure_ = network.failure
        self.leak_ = network.leak

    @property
    def _n_features_out(self):
        return self.network_.n_latents

    def _n_parameters(self):
        """Priors, one failure per edge, leaks."""
        network = self.network_
        return network.n_latents + int(network.structure.sum()) + network.n_features

    def transform(self, X):
        """Infer the latents of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        posterior : ndarray of shape (n_samples, n_latents)
            P(latent on | row).
        """
        return self._by_rows(X, lambda rows: self.network_.posterior(rows))

    def score_samples(self, X):
        """Log-likelihood of each row, in nats.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; NaN is missing and is summed out.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Log-probability of each binary row.
        """
        return self._by_rows(X, lambda rows: self.network_.log_likelihood(rows))

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the fitted network.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Binary features.

        Z : ndarray of shape (n_samples, n_latents)
            The latents behind them.
        """
        check_is_fitted(self)
        return self.network_.sample(n_samples, random_state=random_state)

    def to_networkx(self):
        """Export the fitted network as a graph.

        Returns
        -------
        graph : networkx.DiGraph
            Latent and feature nodes, with priors, leaks and failures as attributes.
        """
        names = self._feature_names()
        return self.network_.to_networkx(self.get_feature_names_out(), names)

    def to_pgmpy(self):
        """Export the fitted network to pgmpy.

        Returns
        -------
        model : pgmpy.models.DiscreteBayesianNetwork
            Features with at most 16 parents only, because its tables hold 2^parents
            columns.
        """
        names = self._feature_names()
        return self.network_.to_pgmpy(self.get_feature_names_out(), names)
