"""What a fitted Gaussian network offers as an estimator: inference and export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .._answers.base import BaseLatentModel
from .._answers.explain import MEAN, Evidence
from .._answers.summary import Parts
from .._core.checks import Comparison, checks_to_frame
from .._core.validation import check_table, within_floats
from .._tables.fill import fill_gaps
from .._tables.odd_columns import read_numbers
from .._tables.single_row import SingleRow
from ._diagnosis.diagnosis import (
    Subject,
    compare_moments,
    diagnose_network,
    thin_out,
)
from ._evidence import evidence_parts
from ._network import GaussianNetwork
from ._noise import Noise, get_noise
from ._row_inference import check_size
from ._summary import describe

if TYPE_CHECKING:
    import pandas as pd


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

    def _evidence(self, row: SingleRow, latents: NDArray[np.intp]) -> Evidence:
        values = self._check_X(row.table)[0]
        # Warns if inference is approximate, once for all of the rows to come.
        self.network_.posterior(values[np.newaxis])
        parts = evidence_parts(self.network_, values, latents)
        known = ~np.isnan(values)
        return Evidence(
            parts, row.cells, known, self._feature_names().tolist(), scale=MEAN
        )

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
            used. Exact for linear networks; otherwise by numerical integration over
            the one feature, the missing ones and latents at their expectations.
        """
        check_is_fitted(self)
        return self.network_.leave_one_out(self._check_X(X))

    def diagnose(self, X: Any) -> pd.DataFrame:
        """Check whether rows follow the fitted model.

        The checks of a table share a level of 5%: each kind has an equal part of it,
        divided by the number of its tests (Bonferroni). So at most about 5% of the
        tables that follow the model have any check that fails, whether the model was
        learned from them or from other rows. Missing values are drawn from the model
        first, given the others of their row, which is right if they are missing at
        random, completely or not. At most 5,000 rows are used, chosen at random but
        always the same.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        checks : pandas.DataFrame
            One row per check, with the columns ``check``, ``what`` (a feature, a pair,
            a latent), ``observed``, ``expected``, ``z`` (the difference in standard
            errors) and ``ok``. Of each kind the worst are listed:

            - "likelihood": mean log-likelihood of a row, and that of independent
              normal columns, which should be smaller;
            - "mean", "spread": of a feature, the spread as standard deviation around
              the mean of the model;
            - "pair": correlation of two features;
            - "skewed noise", "tails": skewness and excess kurtosis of the noise of a
              feature, that is of its residuals;
            - "curvature": correlation of these residuals with the square of another
              feature, "changing spread" of their sizes with another feature or its
              size: a response that is not as the link says, or noise that varies;
            - "groups": log-likelihood per row, less the penalty of the BIC, and that of
              a mixture of normal distributions, which should be smaller;
            - "certainty": share of the variance of a latent that the rows tell, for the
              reader: it is never a failure;
            - "near-duplicates": correlation of two features; it fails above 0.99, which
              hurts reading, though the model may be right.

            With margins that are not normal, all but "groups" is about the normal
            scores of the columns. Residuals are given the features that come before in
            the order of the graph. In networks that are not linear, a feature with a
            latent parent is taken by itself, and values are compared with rows drawn
            from the model.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_latent import IdealParentGaussianBN
        >>> rng = np.random.default_rng(0)
        >>> cause = rng.normal(size=500)
        >>> X = np.column_stack([cause, cause**2 + rng.normal(size=500)])
        >>> checks = IdealParentGaussianBN(margins="normal").fit(X).diagnose(X)
        >>> "curvature" in set(checks.check[~checks.ok])
        True
        """
        return checks_to_frame(diagnose_network(self._subject(X)))

    def _describe(self) -> Parts:
        return describe(self)

    def _compare(self, X: Any) -> list[Comparison]:
        return compare_moments(self._subject(X))

    def _subject(self, X: Any) -> Subject:
        """Rows to diagnose, some of many."""
        check_is_fitted(self)
        rows = self._check_X(X)
        gaps = bool(np.isnan(rows).any()) and self.network_.is_jointly_gaussian
        return Subject(
            self.network_,
            thin_out(rows, costly=gaps),
            self._feature_names().tolist(),
            self.latent_names_.tolist(),
            self._n_learned,
        )
