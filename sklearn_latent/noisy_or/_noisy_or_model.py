"""What the noisy-or estimators share: binary input, inference and export."""

from __future__ import annotations

from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, gen_batches
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from .._answers.base import BaseLatentModel
from .._answers.diagnosis import Subject
from .._answers.explain import Evidence
from .._answers.statistics import row_limit
from .._answers.summary import Parts
from .._core.validation import check_flag, check_table, within_floats
from .._core.warn import warn
from .._tables.blocks import Blocks, read_blocks
from .._tables.fill import fill_gaps
from .._tables.single_row import SingleRow
from .._tables.thin import some_rows
from .._tables.words import Coding, decode, encode, learn_coding
from ..exceptions import PoorDataWarning
from ._misfit import subject_of
from ._named_structure import read_structure
from ._noisy_or_answers import describe, part_of
from ._noisy_or_network import NoisyOrNetwork, warn_of_bounds
from ._posterior import infer_network, predict_off
from ._statistics.packed import PackedRows, binarize_rows
from ._statistics.patterns import Patterns
from ._statistics.watched_columns import (
    Columns,
    Watched,
    as_packed,
    columns_of,
    result_of,
)

# Values that are turned into binary ones at a time, 32 MB as bool, and limits of the
# number of rows; multiples of 64 keep the bit-packed words full.
BATCH_VALUES = 2**25
BATCH_ROWS = 2**13, 2**17

# How rows are validated.
CHECKS = {
    "accept_sparse": "csr",
    "dtype": "numeric",
    "ensure_all_finite": "allow-nan",
}


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
        check_flag(name, getattr(estimator, name))


def check_rows(rows, coding: Coding, threshold):
    """Validate rows apart from the estimator, where they are."""
    rows = decode(rows, coding, threshold)
    with within_floats("X"):
        return _check_values(check_array(rows, input_name="X", **CHECKS))


def _check_values(X):
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, got the type {X.dtype}.")
    if sparse.issparse(X) and not X.has_canonical_format:
        # Values that are stored twice add up.
        X = X.copy()
        X.sum_duplicates()
    return X


def _row_slices(X):
    """Slices of `X` that keep memory bounded."""
    low, high = BATCH_ROWS
    wanted = BATCH_VALUES // X.shape[1] // 64 * 64
    return gen_batches(X.shape[0], int(np.clip(wanted, low, high)))


def network_attributes(network: NoisyOrNetwork) -> dict[str, Any]:
    """Fitted attributes that describe a network."""
    names = "n_latents", "structure", "prior", "failure", "leak"
    return {"network_": network} | {f"{n}_": getattr(network, n) for n in names}


class NoisyOrModel(BaseLatentModel):
    """Base class of the estimators whose fitted model is a `NoisyOrNetwork`.

    A subclass has a parameter ``binarize`` and ends its ``fit`` with
    ``_store(network)``.
    """

    binarize: float | None
    structure: Any
    n_jobs: int | None
    network_: NoisyOrNetwork
    _columns: Columns
    _coding: Coding = MappingProxyType({})
    prior_: NDArray[np.float64]
    failure_: NDArray[np.float64]
    leak_: NDArray[np.float64]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _read_structure(self) -> tuple[NDArray[np.bool_] | None, list | None]:
        """The parameter `structure` in the order of the features, and latent names."""
        if self.structure is None:
            return None, None
        names = getattr(self, "feature_names_in_", None)
        return read_structure(self.structure, names)

    def _name_by_structure(self) -> None:
        """Name the latents as the rows of the parameter `structure`."""
        names = self._read_structure()[1]
        if names is not None:
            self._name_latents(names)

    @property
    def on_values_(self) -> dict[str, str]:
        """Values that count as on, by name of the column; of columns of words alone."""
        names = self._feature_names()
        return {names[j]: words.on for j, words in sorted(self._coding.items())}

    def _check_X(self, X, *, reset=False):
        """Validate `X`; sparse input becomes CSR, NaN is allowed, words are decoded."""
        check_binarize(self.binarize)
        check_table("X", X)
        names = getattr(self, "feature_names_in_", None)
        columns: Any = getattr(X, "columns", names)
        # Else scikit-learn says that the names are others.
        if reset or names is None or list(columns) == list(names):
            X = decode(X, self._coding, self.binarize)
        with within_floats("X"):
            return _check_values(validate_data(self, X, reset=reset, **CHECKS))

    def _learn_X(self, X, *, reset):
        """Validate rows to learn from, whose words may be new."""
        check_table("X", X)
        self._coding = learn_coding(X, {} if reset else self._coding)
        return self._check_X(X, reset=reset)

    def _read_blocks(self, X, sample_weight, *, reset) -> Blocks:
        """Blocks of validated rows and weights, wherever they are; see `read_blocks`.

        Batches of an iterator, and slices of a table, can be read once only.
        """
        fresh = reset

        def check(table):
            nonlocal fresh
            table = self._learn_X(table, reset=fresh)
            fresh = False
            return table

        coding: Coding = {} if reset else self._coding
        if hasattr(X, "__dask_graph__"):
            coding = learn_coding(X, coding)
        blocks = read_blocks(
            X,
            sample_weight,
            check,
            partial(check_rows, coding=coding, threshold=self.binarize),
            cut=_row_slices,
            n_jobs=self.n_jobs,
        )
        if hasattr(X, "__dask_graph__"):
            self._coding = coding
        return blocks

    def _sum_rows(self, blocks: Blocks, function, *shared, reset):
        """Sum over blocks of a function of their packed rows."""
        watched = blocks.sum(Watched.of, self.binarize, function, *shared)
        if watched is None:
            raise ValueError(
                "X must have at least one row of positive weight, got none."
            )
        self._see(watched.columns, reset)
        return watched.result

    def _pack_rows(self, blocks: Blocks, *, reset) -> Blocks:
        """Blocks of packed rows."""
        watched = blocks.map(Watched.of, self.binarize, as_packed)
        columns = watched.sum(columns_of)
        if columns is not None:
            self._see(columns, reset)
        return watched.map(result_of)

    def _see(self, columns: Columns, reset) -> None:
        """Take note of what the columns hold, of all rows so far."""
        before = None if reset else self.__dict__.get("_columns")
        self._columns = columns if before is None else before + columns
        self._columns_are_new = True

    def _refuse_columns(self) -> None:
        """Refuse columns that do not say which value is on, once all rows are read."""
        columns = self.__dict__.get("_columns")
        if columns is not None:
            columns.refuse_codes(_check_feature_names_in(self), self.binarize)

    def _warn_of_columns(self) -> None:
        """Warn of columns that cannot be meant as they are, of all rows so far.

        Once a model is learned: a first batch of few rows has many constant columns.
        """
        if not self.__dict__.pop("_columns_are_new", False):
            return
        names = _check_feature_names_in(self)
        complaint = self._columns.complaint(names, self.binarize)
        if complaint:
            warn(f"X has poor columns: {complaint}.", PoorDataWarning)

    def _by_rows(self, X, function):
        """Apply a function of binary rows to `X`, batch by batch."""
        check_is_fitted(self, "network_")
        X = self._check_X(X)
        return np.concatenate(
            [function(binarize_rows(X[rows], self.binarize)) for rows in _row_slices(X)]
        )

    def _store(self, network: NoisyOrNetwork) -> None:
        """Set the fitted attributes that describe the network."""
        self.__dict__.update(network_attributes(network))
        self._warn_of_columns()

    def _store_fit(
        self, log_likelihood: float, n_rows: float, *, is_exact: bool = True
    ) -> None:
        super()._store_fit(log_likelihood, n_rows, is_exact=is_exact)
        self._warn_of_columns()

    def _store_score(self, patterns: Patterns, n_rows=None):
        """Set the likelihood of the training rows, or an estimate from some of them.

        patterns: as the user coded them, whatever the polarity of the network
        n_rows: number of all rows, if the patterns are a sample of them
        """
        network, weights = self.network_, patterns.weights
        share = 1.0 if n_rows is None else weights.sum() / n_rows
        found = infer_network(network, patterns.on, patterns.observed)
        self._store_fit(
            weights @ found.log_likelihood / share,
            weights.sum() / share,
            is_exact=share == 1.0 and not found.is_bound.any(),
        )

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_latents

    def transform(self, X: Any) -> NDArray[np.float64]:
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

    def score_samples(self, X: Any) -> NDArray[np.float64]:
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

    def _evidence(self, row: SingleRow) -> Evidence:
        binary = binarize_rows(self._check_X(row.table), self.binarize)
        binary = binary.toarray() if sparse.issparse(binary) else binary
        values = binary[0].astype(float)
        # Warns if inference is approximate, once for all of the rows to come.
        self.network_.posterior(binary)
        known = ~np.isnan(values)
        part = partial(part_of, self.network_, values == 1, known)
        return Evidence(part, row.cells, self._feature_names().tolist())

    def _describe(self) -> Parts:
        return describe(self)

    def _subject(self, X: Any) -> Subject:
        table = self._check_X(X)
        some = some_rows(table.shape[0], row_limit(table.shape[1]))
        patterns = PackedRows.of(table[some], self.binarize).patterns()
        names = self._feature_names(), self.latent_names_
        return subject_of(self.network_, patterns, *names, self._n_read)

    def _n_rows_learned(self) -> float | None:
        columns = self.__dict__.get("_columns")
        return None if columns is None else columns.n_rows

    @property
    def _n_read(self) -> float:
        n_rows = self._n_rows_learned()
        return np.inf if n_rows is None else n_rows

    def impute(self, X: Any) -> Any:
        """Fill missing values with the more probable one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        filled : as X
            A copy in the same container, with the same types and labels. Missing
            values are 1 where the feature is more likely on than off, given the other
            values of its row, and 0 elsewhere; all other values are as they were. With
            a threshold `binarize` outside [0, 1), they are the smallest integer above
            it and the largest that is not. In columns of words, such as "yes" and
            "no", they are the words of the column.
        """
        check_is_fitted(self, "network_")
        table = self._check_X(X)
        network = self.network_
        missing = np.zeros(table.shape, dtype=bool)
        is_on = np.zeros(table.shape)
        bounds = [np.zeros(0, dtype=bool)]
        for where in _row_slices(table):
            rows = binarize_rows(table[where], self.binarize)
            if rows.dtype == bool:
                continue
            missing[where] = np.isnan(rows)
            found = predict_off(network, rows == 1, ~missing[where])
            is_on[where][missing[where]] = found.off < 0.5
            bounds.append(found.is_bound)
        warn_of_bounds(np.concatenate(bounds), "missing values")
        return fill_gaps(X, missing, encode(X, is_on, self._coding, self.binarize))
