"""Base class of all estimators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._core import criteria
from .._core.checks import Comparison
from .._core.progress import CallbackSupportMixin
from .._core.validation import check_names, check_sample_weight, shown
from .._core.warn import warn
from .._tables.single_row import SingleRow, read_row
from ..exceptions import PoorDataWarning
from ..plotting import LatentGraphDisplay
from .diagnosis import Subject, compare, diagnose
from .explain import Evidence, Explanation, check_latents, explain_row
from .pages import Summary
from .protocol import Exported, GraphParts
from .report import Topic, columns_of, write_report
from .summary import Parts, summarise

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class BaseLatentModel(CallbackSupportMixin, Exported, TransformerMixin, BaseEstimator):
    """Base class of all estimators.

    A subclass provides ``fit``, ``transform``, ``score_samples``, ``_n_features_out``
    (number of columns of ``transform``), ``_evidence`` (for ``explain``), ``_subject``
    (for ``diagnose``) and ``_describe`` (for ``summary``), and sets ``network_``,
    ``n_latents_`` and ``structure_``. The rest comes from here.
    """

    network_: Any
    n_latents_: int
    structure_: NDArray[np.bool_]
    log_likelihood_: float
    is_exact_: bool
    bic_: float
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    if TYPE_CHECKING:
        # scikit-learn has no types.
        def fit_transform(
            self, X: Any, y: Any = None, **fit_params: Any
        ) -> NDArray[np.float64]: ...

    def __sklearn_is_fitted__(self) -> bool:
        # `partial_fit` may set other attributes before there is a model.
        return hasattr(self, "network_")

    def _store_fit(
        self, log_likelihood: float, n_rows: float, *, is_exact: bool = True
    ) -> None:
        """Set the log-likelihood and the BIC of the training rows.

        `log_likelihood` is the total, `n_rows` the sum of the weights.
        """
        self._n_learned = float(n_rows)
        self.log_likelihood_ = float(log_likelihood)
        self.is_exact_ = bool(is_exact)
        self.bic_ = criteria.bic(log_likelihood, self._n_parameters(), n_rows)

    def _n_rows_learned(self) -> float | None:
        """Number of rows that the model was learned from, if known."""
        return self.__dict__.get("_n_learned")

    def _n_parameters(self) -> int:
        """Free parameters of the fitted network."""
        return self.network_.n_parameters

    def _warn_if_no_latents(
        self, reason: str, left: str = "treats the features as independent"
    ) -> None:
        """Say what follows from a model without latents, if this is one.

        left: what it is then
        """
        if not self.n_latents_:
            warn(
                f"No latent found: {reason}. The model {left}. transform returns no "
                "columns, and most estimators that come next in a pipeline refuse "
                "those: more rows or another threshold may find latents, and a "
                "FeatureUnion with 'passthrough' keeps the features.",
                PoorDataWarning,
            )

    @property
    def latent_names_(self) -> NDArray[Any]:
        """Names of the latents: latent0, latent1, ... or those of `rename_latents`."""
        check_is_fitted(self)
        names = self._given_names()
        if names is None:
            names = self._default_latent_names()
        return np.asarray(names, dtype=object)

    def _default_latent_names(self) -> list[str]:
        """Names of latents that nobody has named."""
        return [f"latent{i}" for i in range(self.n_latents_)]

    def rename_latents(self, names: Any) -> Self:
        """Name the latents of the fitted model, for pictures, tables and exports.

        Parameters
        ----------
        names : list of str or dict
            A name for each latent, or new names by present ones. A further `fit`
            forgets them.

        Returns
        -------
        self : estimator
            The estimator.
        """
        present = self.latent_names_.tolist()
        if isinstance(names, Mapping):
            unknown = [name for name in names if name not in present]
            if unknown:
                raise ValueError(
                    f"names must be given to latents of the model, {present}, got "
                    f"{shown(unknown[0])}."
                )
            names = [names.get(name, name) for name in present]
        self._name_latents(names)
        return self

    def _name_latents(self, names: Any) -> None:
        """Keep names of the latents, for as long as the network is the same."""
        names = check_names("names", names, self.n_latents_)
        if len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
            raise ValueError(f"names must hold different strings, got {shown(names)}.")
        self._latent_names = (self.network_, names)

    def _given_names(self) -> list[str] | None:
        """Names that were given to the latents of this network."""
        network, names = self.__dict__.get("_latent_names", (None, None))
        return names if network is self.network_ else None

    def summary(self, X: Any = None) -> Summary:
        """Describe the fitted model on a page of text.

        Parameters
        ----------
        X : array-like or None, default=None
            Data, as `diagnose` takes them. If given, the summary says whether they
            follow the model.

        Returns
        -------
        summary : str
            What was found, the latents with their leading features, edges, the fit,
            and what to be careful about, warnings of `fit` included. Notebooks show it
            as HTML; ``summary.sections`` has its parts.
        """
        check_is_fitted(self)
        return summarise(self, X)

    def _describe(self) -> Parts:
        """What this kind of model says of itself; see `summary`."""
        raise NotImplementedError(f"{type(self).__name__} has no summary.")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: latent0, latent1, ...

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of str objects
            One name per column.
        """
        self._feature_names(input_features)
        return self.latent_names_

    def diagnose(self, X: Any) -> pd.DataFrame:
        """Check whether rows follow the fitted model.

        Rows are compared with 40 tables that are drawn from the model [1]_. The checks
        of a table share a level of 5%: each kind has an equal part of it, divided by
        the number of its tests (Bonferroni). So at most about 5% of the tables that
        follow the model have any check that fails, whether the model was learned from
        them or from other rows. Missing values are drawn from the model first, given
        the others of their row, which is right if they are missing at random,
        completely or not. Small differences show in many rows, so at most 5,000 rows
        are used (fewer where tables are wide), chosen at random but always the same.

        Parameters
        ----------
        X : array-like
            Rows, or sequences, as for `fit`; NaN is missing.

        Returns
        -------
        checks : pandas.DataFrame
            One row per check, with the columns ``check``, ``what`` (a feature, a pair,
            a latent), ``observed``, ``expected``, ``z`` (the difference in standard
            errors) and ``ok``. Of each kind the worst are listed. All models:

            - "likelihood": mean log-likelihood of a row, and that of independent
              columns, which should be smaller;
            - "rate": share of rows with a category, or in which a feature is on;
            - "mean", "spread": of numbers, the spread as standard deviation around the
              mean of the model;
            - "pair": correlation of two features, or of categories of two features,
              given their rates;
            - "certainty": share of the uncertainty about a latent that the rows take
              away, for the reader: it is never a failure.

            Noisy-or networks; "not ..." is a feature that the model reads as its
            opposite, which counts as on when it is 0:

            - "negative dependence": correlation of two features, which independent
              latents cannot make negative;
            - "row total": standard deviation of the number of features that are on in
              a row (its z compares all of the distribution), and shares of rows with so
              many features on;
            - "dependent latents": correlation of the posteriors of two latents in the
              rows, and in rows drawn from the model;
            - "near-duplicates": correlation of two features; it fails above 0.95 (of
              numbers 0.99), which hurts reading, though the model may be right.

            Gaussian networks, of which all but "groups" is about normal scores of the
            columns where margins are not normal:

            - "skewed noise", "tails": skewness and excess kurtosis of the noise of a
              feature, that is of its residuals given the features before it in the
              graph. Networks that are not linear, or have classes, have no such
              residuals: tails are those of the features, and pairs of sizes stand for
              the next two;
            - "curvature": correlation of these residuals with the square of another
              feature, "changing spread" of their sizes with another feature or its
              size: a response that is not as the link says, or noise that varies;
            - "groups": log-likelihood per row, less the penalty of the BIC, and that of
              a mixture of normal distributions, which should be smaller;
            - "near-duplicates", as above.

            Sequences:

            - "own past": how often a feature repeats its value (of numbers the product
              of two consecutive ones); "older past": the same two slices apart;
            - "slice": as "rate" and "mean", in a single slice; "step": values of a
              feature, given the latents in the slice before, in some slices against
              all others, as (weighted) counts: a process that changes;
            - "tails": excess kurtosis of numbers.

        References
        ----------
        .. [1] Gelman, A., Meng, X.-L., Stern, H. (1996). Posterior predictive
           assessment of model fitness via realized discrepancies. Statistica Sinica, 6.

        Examples
        --------
        >>> from sklearn_latent import NoisyOrEM
        >>> from sklearn_latent.datasets import make_noisy_or
        >>> X = make_noisy_or(n_samples=2000, random_state=0).X
        >>> checks = NoisyOrEM(n_latents=2, random_state=0).fit(X).diagnose(X)
        >>> bool(checks.ok.all())
        True
        """
        check_is_fitted(self)
        return diagnose(self._subject(X))

    def _compare(self, X: Any) -> list[Comparison]:
        """Columns and pairs of rows beside those of the model; see `FitDisplay`."""
        return compare(self._subject(X))

    def _subject(self, X: Any) -> Subject:
        """Rows to diagnose, some of many."""
        raise NotImplementedError(f"{type(self).__name__} has no diagnosis.")

    def score(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean log-likelihood per row, in nats.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Row weights; a weight of 2 is a row twice.

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        rows = self.score_samples(X)
        weights = check_sample_weight(sample_weight, len(rows))
        if weights is None:
            return float(np.mean(rows))
        counted = weights > 0  # a row that does not count may be impossible
        return float(np.average(rows[counted], weights=weights[counted]))

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on `X`; lower is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        bic : float
            Minus twice the log-likelihood plus the penalty.
        """
        rows = self.score_samples(X)
        return criteria.bic(rows.sum(), self._n_parameters(), len(rows))

    def aic(self, X: Any) -> float:
        """Akaike information criterion on `X`; lower is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        aic : float
            Minus twice the log-likelihood plus the penalty.
        """
        return criteria.aic(self.score_samples(X).sum(), self._n_parameters())

    def explain(self, row: Any, *, latents: Any = None) -> Explanation:
        """Which cells of a row moved the posterior of each latent, and by how much.

        Cells are added one at a time, those first without which the posterior would
        change most; what each adds given those before it is its weight of evidence
        [1]_. The cost grows with the number of cells that matter times the number of
        latents.

        Parameters
        ----------
        row : array-like of shape (n_features,), Series, dict or data frame of one row
            The row; NaN is missing, and so are names that a dictionary, a series or a
            frame does not have.
        latents : str, int, list of these or None, default=None
            Names or numbers of the latents to explain; None: all.

        Returns
        -------
        explanation : Explanation
            Prints as text; ``to_frame()`` is a table, ``plot()`` a picture.

        References
        ----------
        .. [1] Good, I. J. (1985). Weight of evidence: a brief survey. Bayesian
           Statistics, 2.
        """
        return self._explain(row, latents)

    def _explain(self, row: Any, latents: Any, **options: Any) -> Explanation:
        """Explain a row, with options of the family."""
        check_is_fitted(self)
        chosen = check_latents("latents", latents, self.latent_names_.tolist())
        evidence = self._evidence(self._single_row(row), **options)
        return explain_row(evidence, chosen, self.latent_names_.tolist())

    def _single_row(self, row: Any) -> SingleRow:
        """One row that a user gave."""
        names = self._feature_names().tolist()
        return read_row(row, names, named=hasattr(self, "feature_names_in_"))

    def _evidence(self, row: SingleRow) -> Evidence:
        """What the cells of a row tell of latents; see `Part`."""
        raise NotImplementedError(f"{type(self).__name__} does not explain rows.")

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
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
            Features.
        Z : ndarray of shape (n_samples, n_latents)
            The latents behind them.
        """
        check_is_fitted(self)
        return self.network_.sample(n_samples, random_state=random_state)

    def _names(self, latent_names: Any, feature_names: Any) -> tuple[list, list]:
        check_is_fitted(self)
        latents = self.latent_names_ if latent_names is None else latent_names
        features = self._node_names() if feature_names is None else feature_names
        return self.network_._names(latents, features)

    def _graph(self, latents: list, features: list) -> GraphParts:
        return self.network_._graph(latents, features)

    def _pgmpy(self, latents: list, features: list) -> Any:
        return self.network_._pgmpy(latents, features)

    def _node_names(self) -> Any:
        """Names of the features as nodes of a graph."""
        return self._feature_names()

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> LatentGraphDisplay:
        """Draw the fitted model.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `LatentGraphDisplay.plot`.

        Returns
        -------
        display : LatentGraphDisplay
            With the drawing in ``ax_`` and ``figure_``.
        """
        return LatentGraphDisplay.from_estimator(self, ax=ax, **kwargs)

    def report(self, path: Any, X: Any = None, *, title: str | None = None) -> None:
        """Write one HTML page about the fitted model.

        The page has the summary, the graph and the edges and, if there are rows, their
        diagnosis and description. It is one file that loads nothing and runs no
        scripts. The function `sklearn_latent.report` writes one about several models.

        Parameters
        ----------
        path : str or path-like
            File to write.
        X : array-like or None, default=None
            Rows to check the model with, as for `diagnose`; for example those of
            `fit`.
        title : str or None, default=None
            Heading of the page. If None, the name of the estimator.
        """
        name = type(self).__name__
        write_report(path, name if title is None else title, {name: Topic(self, X)})

    def _feature_values(self, X: Any) -> Iterable[NDArray[Any]]:
        """Values of each feature in rows as the user has them."""
        return columns_of(X)

    def _feature_names(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features: given, seen in fit, or the default x0, x1, ..."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if names.ndim != 1:
            raise ValueError(
                f"input_features must be a list of names, got {shown(input_features)}."
            )
        return names
