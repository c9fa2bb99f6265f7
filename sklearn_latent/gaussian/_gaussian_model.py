"""What a fitted Gaussian network offers as an estimator: inference and export."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .._answers.base import BaseLatentModel
from .._answers.diagnosis import Subject
from .._answers.explain import MEAN, Evidence
from .._answers.summary import Parts
from .._core.validation import check_table, within_floats
from .._tables.fill import fill_gaps
from .._tables.odd_columns import read_numbers
from .._tables.single_row import SingleRow
from ._gaussian_answers import describe, part_of
from ._gaussian_network import GaussianNetwork
from ._misfit_of_scores import subject_of
from ._noise import Noise, get_noise
from ._row_inference import check_size

# What to do with a column that holds no numbers.
REMEDY = (
    "encode it as numbers, or use LPCC, whose features are categories, or NoisyOrEM if "
    "all columns are yes or no."
)


def check_block(X) -> np.ndarray:
    """Validate rows without an estimator at hand."""
    X = read_numbers(X, REMEDY)
    with within_floats("X"):
        X = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X"
        )
    check_size(X)
    return X


class GaussianModel(BaseLatentModel):
    """Base class of estimators whose fitted model is a `GaussianNetwork`.

    A subclass has parameters ``noise`` and ``output`` and ends its ``fit`` with
    ``_store(network)``.
    """

    noise: str | Noise
    output: str
    network_: GaussianNetwork
    adjacency_: NDArray[np.bool_]
    structure_: NDArray[np.bool_]
    weights_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    noise_variance_: NDArray[np.float64]
    node_names_: NDArray[np.object_]
    n_classes_: int

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_X(self, X, *, reset=False) -> np.ndarray:
        """Validate `X`; NaN is allowed, infinity is not."""
        check_table("X", X)
        X = read_numbers(X, REMEDY)
        with within_floats("X"):
            X = validate_data(
                self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
            )
        check_size(X)
        get_noise(self.noise).check(X)
        return X

    def _store(self, network: GaussianNetwork):
        """Set the fitted attributes that describe the network."""
        self.network_ = network
        self.adjacency_ = network.adjacency
        self.structure_ = network.adjacency[network.n_features :, : network.n_features]
        self.weights_ = network.weights
        self.intercept_ = network.intercept
        self.noise_variance_ = network.noise_variance
        self.n_latents_ = network.n_latents
        self.n_classes_ = network.n_classes
        self.node_names_ = np.asarray(network.node_names, dtype=object)

    @property
    def _n_features_out(self):
        network = self.network_
        return network.n_latents if self.output == "latents" else network.n_nodes

    def _default_latent_names(self) -> list[str]:
        return self.network_.node_names[self.network_.n_features :]

    def _name_latents(self, names: Any) -> None:
        super()._name_latents(names)
        features = self.node_names_[: self.network_.n_features]
        self.node_names_ = np.concatenate([features, self.latent_names_])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: the features, then the latents.

        With ``output="latents"`` the latents alone.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of str objects
            The same as ``node_names_``, unless `input_features` names features that
            had no names in `fit`.
        """
        names = self._feature_names(input_features)
        if self.output == "latents":
            return self.latent_names_
        return np.concatenate([names, self.node_names_[len(names) :]]).astype(object)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Complete the rows and infer the latents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        completed : ndarray of shape (n_samples, n_nodes) or (n_samples, n_latents)
            Expected value of every node given the observed values of the row; observed
            values are left as they are. With ``output="latents"`` the latents alone.
        """
        check_is_fitted(self)
        completed = self.network_.expectation(self._check_X(X))
        if self.output == "latents":
            return completed[:, self.network_.n_features :]
        return completed

    def _evidence(self, row: SingleRow) -> Evidence:
        values = self._check_X(row.table)[0]
        # Warns if inference is approximate, once for all of the rows to come.
        self.network_.posterior(values[np.newaxis])
        part = partial(part_of, self.network_, values)
        return Evidence(part, row.cells, self._feature_names().tolist(), scale=MEAN)

    def impute(self, X: Any) -> Any:
        """Fill in missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        filled : array or data frame, as `X`
            Expected values, given the observed ones of the row, where `X` has none;
            everything else as it is.
        """
        check_is_fitted(self)
        values = self._check_X(X)
        filled = self.network_.expectation(values)[:, : self.network_.n_features]
        return fill_gaps(X, np.isnan(values), filled)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-likelihood of each row over its observed values, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing and is integrated out.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Exact for linear networks, and for complete rows without latents; an
            estimate otherwise.
        """
        check_is_fitted(self)
        return self.network_.log_likelihood(self._check_X(X))

    def predict_nodes(self, X: Any) -> NDArray[np.float64]:
        """Predict each feature from the others of its row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        predicted : ndarray of shape (n_samples, n_features)
            Expected value of each feature given all other observed values, its own not
            used. Exact for linear networks, otherwise by mean field.
        """
        check_is_fitted(self)
        return self.network_.leave_one_out(self._check_X(X))

    def _describe(self) -> Parts:
        return describe(self)

    def _subject(self, X: Any) -> Subject:
        names = self._feature_names(), self.latent_names_
        return subject_of(self.network_, self._check_X(X), *names, self._n_learned)
