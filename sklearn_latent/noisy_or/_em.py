"""Noisy-or networks by expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .._core.progress import Progress, with_callbacks
from .._core.transaction import all_or_nothing
from .._core.validation import (
    MOST_COLUMNS,
    MOST_ROWS,
    check_choice,
    check_count,
    check_random_state,
    check_tol,
)
from .._core.warn import warn
from ..exceptions import ModelMisfitWarning
from ._beam import FINE, Beam
from ._maximum_likelihood import climb_beams, climb_table, cut, maximize_likelihood
from ._mean_field_em import VariationalEM
from ._misfit import contradictions, misfit_message
from ._noisy_or_model import NoisyOrModel, check_flags, network_attributes
from ._noisy_or_network import NoisyOrNetwork
from ._posterior import MAX_TABLE
from ._refine_causes import scored_rows
from ._state_table import MAX_ENUMERATED, TableRows
from ._statistics.packed import PackedRows
from ._statistics.patterns import Component, Patterns

INFERENCES = ("auto", "exact", "variational")

# EM steps between two reports of progress.
ROUND = 25

# EM finds the hill in few steps and would climb it in thousands, so exact inference
# hands over to quasi-Newton steps here.
HANDOVER = 100

# Least leak of a random start of truncated EM, as a share of the rate of the feature. A
# leak near 0 stays there, since states that need it are dropped.
LEAST_LEAK = 0.1


@dataclass
class Start:
    """A start of EM on a component, how far it has come, and the bound it has there.

    inference: "exact", "truncated" or "variational"
    shares: of the features among their parents, for variational inference
    """

    part: Component
    patterns: Patterns
    network: NoisyOrNetwork
    inference: str
    shares: Any = None
    bound: float = -np.inf
    n_iter: int = 0
    converged: bool = False

    def steps(self, max_iter: int, most: int) -> int:
        """How many steps to take next."""
        if self.inference == "exact":
            max_iter = min(max_iter, HANDOVER)
        return 0 if self.converged else min(most, max_iter - self.n_iter)

    def moved(self, ascent, **changes) -> Start:
        """Where an ascent from here has ended."""
        return replace(
            self,
            **{"network": ascent.state} | changes,
            bound=float(ascent.objective),
            n_iter=self.n_iter + ascent.n_iter,
            converged=ascent.converged,
        )


def advance(start: Start, n_steps: int, tol: float) -> Start:
    """Take some steps of EM; `tol` is per row."""
    options: dict[str, Any] = {"tol": tol, "max_iter": n_steps}
    if start.inference == "exact":
        return start.moved(
            climb_table(start.network, TableRows(start.patterns), **options)
        )
    if start.inference == "variational":
        em = VariationalEM(start.network.structure, start.patterns)
        shares = em.start() if start.shares is None else start.shares
        ascent = em.climb(start.network, shares, **options)
        return start.moved(ascent, network=ascent.state[0], shares=ascent.state[1])
    # Every call searches from the empty states, because those that were followed from
    # step to step may be a local optimum.
    beams = [Beam(rows, start.network.n_latents, FINE) for rows in cut(start.patterns)]
    # Two threads on small matrices take longer than one.
    with threadpool_limits(1):
        return start.moved(
            climb_beams(start.network, beams, smooth=False, patient=True, **options)
        )


def polish(start: Start, max_iter: int) -> Start:
    """Go from where exact EM stopped to the maximum, within the iterations."""
    if start.inference != "exact" or start.n_iter >= max_iter:
        return start
    left = max_iter - start.n_iter
    fit = maximize_likelihood(start.network, start.patterns, max_iter=left)
    return replace(
        start,
        network=fit.network,
        bound=fit.log_likelihood,
        n_iter=start.n_iter + fit.n_iter,
        converged=fit.converged,
    )


def best_starts(starts) -> list[Start]:
    """Pick the best start of each component."""
    best: dict[bytes, Start] = {}
    for start in starts:
        key = start.part.features.tobytes() + start.part.latents.tobytes()
        if key not in best or start.bound > best[key].bound:
            best[key] = start
    return list(best.values())


class NoisyOrEM(NoisyOrModel):
    """Noisy-or network of binary features, by expectation-maximisation.

    Hidden causes switch binary features on: a cause that is present activates each of
    its features unless it fails to, independently of the others, and a feature is also
    on by itself with its leak probability. Priors, failures and leaks are learned by
    maximum likelihood from random starts, on distinct rows with their weights. Latents
    that share no feature, directly or through others, are learned apart.

    Parameters
    ----------
    n_latents : int or None, default=None
        Number of latents. None: as many as `structure` has rows, else 1.
    structure : array-like or sparse matrix of shape (n_latents, n_features) or None, \
default=None
        True where a latent is a parent of a feature. None: every latent is a parent of
        every feature. A data frame is matched with `X` by the names of its columns, and
        the labels of its rows name the latents.
    inference : {"auto", "exact", "variational"}, default="auto"
        "auto" is "exact" where the structure couples at most 12 latents; elsewhere it
        sums over the likeliest states of the latents of each row, which nearly all of
        the likelihood comes from, for any number of latents [3]_. "exact" sums over all
        states of the latents, of which at most 16 may be coupled; after 100 iterations
        EM hands over to quasi-Newton steps [1]_, which reach the maximum that EM only
        approaches. "variational" maximises a mean-field lower bound of the likelihood
        [2]_; its cost is linear in the number of edges, but it is biased: it tends to
        give a feature to one of its parents alone.
    n_init : int, default=1
        Number of random starts, of which the best is kept.
    max_iter : int, default=1000
        Maximum number of iterations of each start.
    tol : float, default=1e-6
        EM stops when iterations gain less than this in the mean log-likelihood per
        row; quasi-Newton steps stop when the gradient vanishes.
    warm_start : bool, default=False
        Whether a further `fit` goes on from the parameters of the last one, instead of
        from `n_init` random starts.
    binarize : float or None, default=0.0
        Values above it are on. None: X holds 0 and 1 already.
    n_jobs : int or None, default=None
        Number of starts that run at the same time, through joblib.
    random_state : int, RandomState instance or None, default=None
        Source of the random starts.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    n_latents_ : int
        Number of latents.
    structure_ : ndarray of bool of shape (n_latents, n_features)
        Which latent drives which feature.
    prior_ : ndarray of shape (n_latents,)
        P(latent on).
    failure_ : ndarray of shape (n_latents, n_features)
        Failure probabilities, 1.0 where there is no edge.
    leak_ : ndarray of shape (n_features,)
        P(feature on | all latents off).
    network_ : NoisyOrNetwork
        The three as a model.
    lower_bound_ : float
        Mean log-likelihood per row of the training data, or the lower bound of it that
        was maximised, if not all states of the latents were summed.
    log_likelihood_ : float
        Log-likelihood of the training rows, in nats.
    bic_ : float
        Bayesian information criterion of the training rows; lower is better.
    is_exact_ : bool
        Whether these two are exact; if many latents are coupled, they are lower bounds,
        or with ``inference="variational"`` estimates from a sample of the rows.
    n_iter_ : int
        Iterations of the best start, of the component that took longest.
    converged_ : bool
        Whether the best start converged.
    n_features_in_ : int
        Number of features seen in `fit`.
    on_values_ : dict of str
        Values that count as on in columns of words such as "yes" and "no", by name of
        the column. Columns of numbers and of True and False are not listed.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string names.

    See Also
    --------
    NoisyOrMoMLearner : Needs no random starts and no inference.

    References
    ----------
    .. [1] Jamshidian, M., Jennrich, R. I. (1997). Acceleration of the EM algorithm by
       using quasi-Newton methods. Journal of the Royal Statistical Society B, 59.
    .. [2] Singliar, T., Hauskrecht, M. (2006). Noisy-or component analysis and its
       application to link analysis. Journal of Machine Learning Research, 7.
    .. [3] Drefs, J., Guiraud, E., Luecke, J. (2022). Evolutionary variational
       optimization of generative models. Journal of Machine Learning Research, 23.

    Examples
    --------
    >>> from sklearn_latent import NoisyOrEM, NoisyOrNetwork
    >>> network = NoisyOrNetwork([0.3], [[0.1, 0.2, 0.3, 0.4]], [0.05] * 4)
    >>> X, Z = network.sample(20_000, random_state=0)
    >>> model = NoisyOrEM(random_state=0).fit(X)
    >>> model.prior_.round(1)
    array([0.3])
    >>> model.failure_.round(1)
    array([[0.1, 0.2, 0.3, 0.4]])
    """

    lower_bound_: float
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        n_latents: int | None = None,
        *,
        structure: Any = None,
        inference: str = "auto",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        binarize: float | None = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_latents = n_latents
        self.structure = structure
        self.inference = inference
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.random_state = random_state
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
        self : NoisyOrEM
            The fitted estimator.
        """
        self._check_parameters()
        n_rounds = -(-self.max_iter // ROUND)
        with (
            Progress(self, max_steps=n_rounds + 1, X=X) as progress,
            all_or_nothing(self),
        ):
            blocks = self._read_blocks(X, sample_weight, reset=True)
            patterns = self._sum_rows(blocks, PackedRows.patterns, reset=True)
            self._refuse_columns()
            structure = self._check_structure()
            starts = self._starts(structure, patterns)
            fitted = partial(_fitted, structure)
            with Parallel(n_jobs=self.n_jobs) as parallel:
                stopped = self._climb(starts, parallel, progress, fitted)
                if not stopped:
                    starts = parallel(
                        delayed(polish)(start, self.max_iter) for start in starts
                    )
            best = best_starts(starts)
            self.__dict__.update(fitted(best))
            self._store_likelihood(best, patterns)
            self._name_by_structure()
            if self.n_latents != 0:
                self._warn_if_no_latents("structure has no rows")
            misfit = contradictions(self.network_, patterns, self._feature_names())
            progress(f"bound {self.lower_bound_:.6f}", **fitted(best))
        if stopped:
            return self
        # A fit that is not finished need not follow the data yet.
        if not self.converged_:
            warn(
                f"EM did not converge within max_iter={self.max_iter} iterations; "
                "raise max_iter or tol.",
                ConvergenceWarning,
            )
        elif misfit:
            warn(misfit_message(misfit), ModelMisfitWarning)
        return self

    def _check_parameters(self):
        """Validate the parameters that do not concern the data."""
        check_flags(self, "warm_start")
        check_choice("inference", self.inference, INFERENCES)
        check_count("n_init", self.n_init, high=MOST_ROWS)
        check_count("max_iter", self.max_iter)
        check_count("n_latents", self.n_latents, 0, MOST_COLUMNS, optional=True)
        check_tol(self.tol)

    def _check_structure(self):
        """Validate the structure, or make one with all edges."""
        structure, _ = self._read_structure()
        if structure is None:
            n_latents = 1 if self.n_latents is None else self.n_latents
            return np.ones((n_latents, self.n_features_in_), dtype=bool)
        n_latents = len(structure) if self.n_latents is None else self.n_latents
        if structure.shape != (n_latents, self.n_features_in_):
            raise ValueError(
                "structure must have one row per latent and one column per feature, "
                f"shape {(n_latents, self.n_features_in_)}, got {structure.shape}."
            )
        return structure

    def _inference_of(self, n_latents):
        """How to infer so many coupled latents; refuse to enumerate too many."""
        if self.inference == "auto":
            return "exact" if n_latents <= MAX_TABLE else "truncated"
        if self.inference == "exact" and n_latents > MAX_ENUMERATED:
            raise ValueError(
                f"inference='exact' must have at most {MAX_ENUMERATED} latents coupled "
                f"by the structure, got {n_latents}; use inference='auto'."
            )
        return self.inference

    def _starts(self, structure, patterns):
        """Draw random starts; they depend on the set of patterns and weights only."""
        rng = check_random_state(self.random_state)
        known = patterns.weights @ patterns.known
        rate = (patterns.weights @ patterns.on) / np.maximum(known, 1e-300)
        if self.warm_start and hasattr(self, "network_"):
            draws, n_random = [self._last_network(structure)], 0
        else:
            draws, n_random = [], self.n_init
        for _ in range(n_random):
            prior = rng.uniform(0.1, 0.6, len(structure))
            failure = np.where(structure, rng.uniform(0.2, 0.8, structure.shape), 1.0)
            leak = rate * rng.uniform(0.02, 0.2, len(rate))
            draws.append(NoisyOrNetwork._of(prior, failure, leak)._clipped())
        starts = []
        for part, table in patterns.by_component(structure):
            inference = self._inference_of(len(part.latents))
            for draw in draws:
                network = draw._part(*part)
                if inference == "truncated" and n_random:
                    least = LEAST_LEAK * rate[part.features]
                    network = network._with(leak=np.maximum(network.leak, least))
                starts.append(Start(part, table, network, inference))
        return starts

    def _last_network(self, structure):
        """Parameters of the last fit, as a start."""
        network = self.network_
        if network.failure.shape != structure.shape:
            raise ValueError(
                "warm_start must go on with as many latents and features as the last "
                f"fit, {network.failure.shape}, got {structure.shape}."
            )
        # An edge that is new, or had no effect, starts in the middle.
        failure = np.where(network.structure, network.failure, 0.5)
        return network._with(failure=np.where(structure, failure, 1.0))._clipped()

    def _store_likelihood(self, best, patterns):
        """Set the likelihood: as EM has it if that is exact, or else by inference."""
        total = patterns.weights.sum()
        bound = sum(start.bound for start in best)
        kinds = {start.inference for start in best}
        rows = scored_rows(patterns, self.structure_)
        if kinds <= {"exact"}:
            self._store_fit(bound, total)
        elif "variational" in kinds or len(rows.weights) == len(patterns.weights):
            self._store_score(rows, total)
        else:
            # Some hundredths of a nat too low in each row; a sample is further off.
            self._store_fit(bound, total, is_exact=False)

    def _climb(self, starts, parallel, progress, fitted):
        """Advance all starts in rounds, in place, until they converge.

        Returns whether a callback said stop.
        """
        while True:
            steps = [start.steps(self.max_iter, ROUND) for start in starts]
            moving = np.flatnonzero(steps)
            if not len(moving):
                return False
            results = parallel(
                delayed(advance)(starts[i], steps[i], self.tol) for i in moving
            )
            for i, start in zip(moving, results, strict=True):
                starts[i] = start
            left = sum(not start.converged for start in starts)
            done = max(start.n_iter for start in starts)
            if left and progress(
                f"iteration {done}, {left} of {len(starts)} starts go on",
                **fitted(best_starts(starts)),
            ):
                return True


def _fitted(structure, starts):
    """Fitted attributes from one start per component."""
    n_latents, n_features = structure.shape
    empty = NoisyOrNetwork._of(
        np.zeros(n_latents), np.ones(structure.shape), np.zeros(n_features)
    )
    network = empty._with_parts((start.part, start.network) for start in starts)
    total = starts[0].patterns.weights.sum() if starts else 1.0
    return network_attributes(network._checked()) | {
        "lower_bound_": float(sum(start.bound for start in starts) / total),
        "n_iter_": max((start.n_iter for start in starts), default=0),
        "converged_": all(start.converged for start in starts),
    }
