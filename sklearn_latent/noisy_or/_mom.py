"""Noisy-or networks of known structure by the method of moments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.checks import Check
from .._core.progress import Progress, with_callbacks
from .._core.transaction import all_or_nothing
from .._core.validation import check_flag
from .._core.warn import warn
from ..exceptions import ModelMisfitWarning, PoorDataWarning, UnidentifiableWarning
from ._misfit import (
    contradictions,
    contradictions_of_moments,
    misfit_message,
)
from ._moment_fit import learn_parameters, parameter_errors
from ._moment_plan import Plan, Statistics
from ._noisy_or_model import NoisyOrModel, check_flags
from ._noisy_or_network import NoisyOrNetwork
from ._schedule import Schedule


class NoisyOrMoMLearner(NoisyOrModel):
    """Parameters of a noisy-or network of known structure, by the method of moments.

    Hidden causes switch binary features on: a cause that is present activates each of
    its features unless it fails to, independently of the others, and a feature is also
    on by itself with its leak probability. Which cause is connected with which feature
    is known; priors, failures and leaks are learned from the features alone, without
    inference: triplets of features that a single cause couples are solved in closed
    form, and what is known is subtracted so that further triplets become solvable
    [1]_. The cost is one pass over the rows.

    Parameters
    ----------
    structure : array-like or sparse matrix of shape (n_latents, n_features) or None, \
default=None
        True where a latent is a parent of a feature. None: one latent over all
        features, with a warning if there are more than three. A data frame is matched
        with `X` by the names of its columns, and the labels of its rows name the
        latents.
    use_pairs : bool, default=True
        Whether to use pairs of features too, once a latent is partly known.
    clean_up : bool, default=True
        Whether to learn edges that no schedule reaches, by least squares from random
        starts. Without it they are left without effect.
    refine : bool, default=True
        Whether to improve on the published estimator: maximise the likelihood of
        connected components of the network that are small enough for it, and fit the
        others by
        least squares to pairs and triplets of siblings. No feature is then on more
        often by its latents than it is in the data, and a latent that the data do not
        show is rare. False is the estimator of [1]_: one triplet per edge.
    binarize : float or None, default=0.0
        Values above it are on. None: X holds 0 and 1 already.
    n_jobs : int or None, default=None
        Number of threads that count; None is 1 unless in a
        :obj:`joblib.parallel_config` context.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    prior_ : ndarray of shape (n_latents,)
        P(latent on).
    failure_ : ndarray of shape (n_latents, n_features)
        P(a latent that is on fails to switch on the feature); 1 without an edge.
    leak_ : ndarray of shape (n_features,)
        P(feature on | all latents off).
    n_latents_ : int
        Number of latents.
    structure_ : ndarray of bool of shape (n_latents, n_features)
        Edges that have an effect.
    prior_stderr_ : ndarray of shape (n_latents,)
        Standard errors of the priors, computed at first use. With `refine`, a latent
        that may as well be absent (its prior is below two standard errors) has that of
        a guess: any prior that the rates of its features allow.
    failure_stderr_ : ndarray of shape (n_latents, n_features)
        Standard errors of the failures, computed at first use; NaN without an edge, or
        where only the clean-up reached and nothing was refined. Where they do not
        come from the likelihood, they are simulated from the fitted network, with a
        fixed seed.
    network_ : NoisyOrNetwork
        The fitted model.
    depth_ : ndarray of shape (n_latents, n_features)
        Round in which the schedule learned the edge; NaN: no edge; inf: not reached.
    schedule_ : Schedule
        The schedule.
    n_samples_seen_ : float
        Number of rows; of weighted ones the effective number.
    n_features_in_ : int
        Number of features seen in `fit`.
    on_values_ : dict of str
        Values that count as on in columns of words such as "yes" and "no", by name of
        the column. Columns of numbers and of True and False are not listed.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen in `fit`, if all are strings.

    See Also
    --------
    NoisyOrEM : The same model by expectation maximisation.
    find_schedule : What can be learned, from the structure alone.

    Notes
    -----
    Where values are missing (NaN), each moment is estimated from the rows that have its
    features. With ``refine=False``, and in components that are too large for the
    likelihood, this is biased unless values are missing completely at random; `fit`
    warns if it depends on other features that values are missing. The likelihood is of
    what each row shows, which is right if values are missing at random.

    References
    ----------
    .. [1] Halpern, Y. and Sontag, D. (2013). Unsupervised learning of noisy-or
       Bayesian networks. UAI.

    Examples
    --------
    >>> from sklearn_latent import NoisyOrMoMLearner
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> structure = [[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]]
    >>> data = make_noisy_or(structure, n_samples=20_000, random_state=0)
    >>> learner = NoisyOrMoMLearner(structure).fit(data.X)
    >>> bool(abs(learner.prior_ - data.network.prior).max() < 0.1)
    True
    >>> learner.transform(data.X).shape
    (20000, 2)
    """

    depth_: NDArray[np.float64]
    schedule_: Schedule
    n_samples_seen_: float

    def __init__(
        self,
        structure: Any = None,
        *,
        use_pairs: bool = True,
        clean_up: bool = True,
        refine: bool = True,
        binarize: float | None = 0.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.structure = structure
        self.use_pairs = use_pairs
        self.clean_up = clean_up
        self.refine = refine
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the parameters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; NaN is missing. Also an iterator of such batches, or a Dask array or
            data frame, which is read block by block on its own workers.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Row weights. Whole numbers are counts: a weight of 2 is a row twice. If any
            is not whole, all are sampling weights, whose scale does not matter.

        Returns
        -------
        self : NoisyOrMoMLearner
            The fitted estimator.
        """
        with Progress(self, max_steps=4, X=X) as progress, all_or_nothing(self):
            statistics, plan = self._read(X, sample_weight, reset=True)
            progress(f"counted {len(plan.sets):,} moments")
            self._solve(plan, statistics, progress)
        return self

    @with_callbacks
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        update: bool = True,
    ) -> Self:
        """Learn from further rows; the same as one `fit` on all rows together.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; NaN is missing.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Row weights. Whole numbers are counts: a weight of 2 is a row twice. If any
            is not whole, all are sampling weights, whose scale does not matter. Each
            batch then counts by its own effective number of rows.
        update : bool, default=True
            Whether to solve for the parameters now. Pass False for all but the last
            of many batches to save time.

        Returns
        -------
        self : NoisyOrMoMLearner
            The estimator, fitted to all rows so far if `update`.
        """
        check_flag("update", update)
        with Progress(self, max_steps=4, X=X) as progress, all_or_nothing(self):
            before = getattr(self, "_statistics", None)
            statistics, plan = self._read(X, sample_weight, reset=before is None)
            if before is not None:
                statistics = before + statistics
            progress(f"counted {len(plan.sets):,} moments")
            if update:
                self._solve(plan, statistics, progress)
            else:
                self._plan, self._statistics = plan, statistics
        return self

    def _read(self, X, sample_weight, *, reset):
        """Validate, plan and count."""
        check_flags(self, "use_pairs", "clean_up", "refine")
        blocks = self._read_blocks(X, sample_weight, reset=reset)
        plan = self._make_plan() if reset else self._plan
        return self._sum_rows(blocks, Statistics.of, plan, reset=reset), plan

    def _make_plan(self):
        structure, _ = self._read_structure()
        if structure is None:
            structure = np.ones((1, self.n_features_in_), dtype=bool)
        if structure.shape[1] != self.n_features_in_:
            raise ValueError(
                "structure must have one column per feature of X, expected "
                f"{self.n_features_in_}, got shape {structure.shape}."
            )
        return Plan.of(
            structure,
            use_pairs=self.use_pairs,
            clean_up=self.clean_up,
            refine=self.refine,
        )

    def _solve(self, plan, statistics, progress):
        """From statistics to fitted attributes."""
        self._refuse_columns()
        learned = learn_parameters(
            plan, statistics, improve=self.refine, report=progress
        )
        self._warn(plan.schedule, learned)
        self._plan, self._statistics = plan, statistics
        self.__dict__.pop("_stderr", None)
        self.schedule_ = plan.schedule
        self.depth_ = plan.schedule.depth
        self.n_samples_seen_ = float(statistics.moments.total.max())
        self._store(NoisyOrNetwork(*learned[:3]))
        self._name_by_structure()
        self._warn_if_no_latents("structure has no rows")
        if statistics.gaps is not None:
            statistics.gaps.warn(self._feature_names())
        misfit = self._contradictions(plan, statistics)
        if misfit:
            warn(misfit_message(misfit), ModelMisfitWarning)

    def _contradictions(self, plan, statistics) -> list[Check]:
        """Ways in which the network contradicts the data."""
        network, moments = self.network_, statistics.moments
        names = np.asarray(self._feature_names(), dtype=object)
        if not self.refine or np.ptp(moments.total) == 0:
            return contradictions_of_moments(
                network, moments, names, rough=not self.refine
            )
        # Rows that have some features need not be like others.
        found = [
            check
            for part, table in zip(plan.parts, statistics.tables, strict=True)
            if table is not None
            for check in contradictions(
                network._part(*part), table, names[part.features]
            )
        ]
        return sorted(found, key=lambda check: -abs(check.z))

    def _warn(self, schedule, learned):
        """Say which parameters the structure or the data leave open."""
        n = self.n_features_in_
        # Three features cannot show more than one latent.
        if self.structure is None and n > 3:
            warn(
                f"structure=None assumes a single latent behind all {n} features. "
                "QuartetStructureLearner finds out how many there are; pass structure "
                f"if it is known, np.ones((1, {n})) if one is meant.",
                PoorDataWarning,
            )
        if not schedule.is_complete:
            edges = [(int(i), int(j)) for i, j in schedule.unreached]
            shown = ", ".join(map(str, edges[:20])) + (
                ", ... (all are in schedule_.unreached)" if len(edges) > 20 else ""
            )
            how = "learned by clean-up" if self.clean_up else "left without effect"
            warn(
                f"No schedule reaches {len(edges)} of {int(schedule.structure.sum())} "
                f"edges; {how}. As (latent, feature): {shown}.",
                UnidentifiableWarning,
            )
        n_latents = len(schedule.structure)
        reached = np.isfinite(schedule.depth[schedule.structure])
        poor = int((reached & ~learned.supported[n_latents:]).sum())
        if poor:
            warn(
                f"The data show no dependence that would determine {poor} of "
                f"{int(reached.sum())} edges within reach (constant or independent "
                "features, or too few rows); they start out without effect.",
                PoorDataWarning,
            )

    @property
    def prior_stderr_(self) -> NDArray[np.float64]:
        """Standard errors of the priors."""
        return self._standard_errors()[0]

    @property
    def failure_stderr_(self) -> NDArray[np.float64]:
        """Standard errors of the failures."""
        return self._standard_errors()[1]

    def _standard_errors(self):
        check_is_fitted(self, "network_")
        if not hasattr(self, "_stderr"):
            self._stderr = parameter_errors(
                self._plan, self._statistics, self.network_, improved=self.refine
            )
        return self._stderr
