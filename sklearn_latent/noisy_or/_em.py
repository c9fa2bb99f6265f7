"""Noisy-or networks by expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._progress import Progress, with_callbacks
from .._transaction import all_or_nothing
from .._validation import (
    MOST_COLUMNS,
    MOST_ROWS,
    check_choice,
    check_count,
    check_tol,
)
from .._warn import warn
from ._identifiability.schedule import check_structure
from ._likelihood.exact import (
    MAX_ENUMERATED,
    Parameters,
    climb_exact,
    clip_parameters,
)
from ._likelihood.likelihood import maximize_likelihood
from ._likelihood.variational import VariationalEM
from ._model import NoisyOrModel, check_flags, network_attributes, read_patterns
from ._network import NoisyOrNetwork
from ._statistics.patterns import Component, Patterns
from ._structure_search.sampling import scored_rows

# EM steps between two reports of progress.
ROUND = 25

# EM finds the hill in few steps and would climb it in thousands, so exact inference
# hands over to quasi-Newton steps here.
HANDOVER = 100


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
        every feature.
    inference : {"exact", "variational"}, default="exact"
        "exact" sums over all states of the latents, of which at most 16 may be coupled
        by the structure; after 100 iterations EM hands over to quasi-Newton steps [1]_,
        which reach the maximum that EM only approaches. "variational" maximises a
        mean-field lower bound of the likelihood [2]_; its cost is linear in the number
        of edges, but it is biased: it tends to give a feature to one of its parents
        alone.
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
        Mean log-likelihood per row of the training data, or its variational bound.
    log_likelihood_ : float
        Log-likelihood of the training rows, in nats.
    bic_ : float
        Bayesian information criterion of the training rows; lower is better.
    is_exact_ : bool
        Whether these two are exact; with ``inference="variational"`` they are estimated
        from a sample of the rows if many latents are coupled.
    n_iter_ : int
        Iterations of the best start, of the component that took longest.
    converged_ : bool
        Whether the best start converged.
    n_features_in_ : int
        Number of features seen in `fit`.
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
        inference: str = "exact",
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
            Row weights; a weight of 2 is a row twice.

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
            patterns = read_patterns(
                self._read_blocks(X, sample_weight, reset=True), self.binarize
            )
            structure = self._check_structure()
            runs = self._starts(structure, patterns)
            self._check_reach(runs)
            fitted = partial(_fitted, structure)
            with Parallel(n_jobs=self.n_jobs) as parallel:
                stopped = self._climb(runs, parallel, progress, fitted)
                if self.inference == "exact" and not stopped:
                    runs = parallel(
                        delayed(_polish)(run, self.max_iter) for run in runs
                    )
            best = _best_runs(runs)
            self.__dict__.update(fitted(best))
            if self.inference == "exact":
                total = patterns.weights.sum()
                self._store_fit(sum(run.bound for run in best), total)
            else:
                scored = scored_rows(patterns, structure)
                self._store_score(scored, patterns.weights.sum())
            progress(f"bound {self.lower_bound_:.6f}", **fitted(best))
        if not (self.converged_ or stopped):
            warn(
                f"EM did not converge within max_iter={self.max_iter} iterations; "
                "raise max_iter or tol.",
                ConvergenceWarning,
            )
        return self

    def _check_parameters(self):
        """Validate the parameters that do not concern the data."""
        check_flags(self, "warm_start")
        check_choice("inference", self.inference, ("exact", "variational"))
        check_count("n_init", self.n_init, high=MOST_ROWS)
        check_count("max_iter", self.max_iter)
        check_count("n_latents", self.n_latents, 0, MOST_COLUMNS, optional=True)
        check_tol(self.tol)

    def _check_structure(self):
        """Validate the structure, or make one with all edges."""
        if self.structure is None:
            n_latents = 1 if self.n_latents is None else self.n_latents
            return np.ones((n_latents, self.n_features_in_), dtype=bool)
        structure = check_structure(self.structure)
        n_latents = len(structure) if self.n_latents is None else self.n_latents
        if structure.shape != (n_latents, self.n_features_in_):
            raise ValueError(
                "structure must have one row per latent and one column per feature, "
                f"shape {(n_latents, self.n_features_in_)}, got {structure.shape}."
            )
        return structure

    def _check_reach(self, runs):
        """Refuse to enumerate the states of too many latents."""
        largest = max((len(run.part.latents) for run in runs), default=0)
        if self.inference == "exact" and largest > MAX_ENUMERATED:
            raise ValueError(
                f"inference='exact' must have at most {MAX_ENUMERATED} latents coupled "
                f"by the structure, got {largest}; use inference='variational'."
            )

    def _starts(self, structure, patterns):
        """Draw random starts; they depend on the set of patterns and weights only."""
        rng = check_random_state(self.random_state)
        known = patterns.weights @ patterns.known
        rate = (patterns.weights @ patterns.on) / np.maximum(known, 1e-300)
        if self.warm_start and hasattr(self, "network_"):
            draws, n_random = [self._last_parameters(structure)], 0
        else:
            draws, n_random = [], self.n_init
        for _ in range(n_random):
            prior = rng.uniform(0.1, 0.6, len(structure))
            failure = np.where(structure, rng.uniform(0.2, 0.8, structure.shape), 1.0)
            leak = rate * rng.uniform(0.02, 0.2, len(rate))
            draws.append(clip_parameters(prior, failure, leak))
        return [
            _Run(part, table, Parameters(*draw).restrict(part))
            for part, table in patterns.by_component(structure)
            for draw in draws
        ]

    def _last_parameters(self, structure):
        """Parameters of the last fit, as a start."""
        network = self.network_
        if network.failure.shape != structure.shape:
            raise ValueError(
                "warm_start must go on with as many latents and features as the last "
                f"fit, {network.failure.shape}, got {structure.shape}."
            )
        # An edge that is new, or had no effect, starts in the middle.
        failure = np.where(network.structure, network.failure, 0.5)
        failure = np.where(structure, failure, 1.0)
        return clip_parameters(network.prior, failure, network.leak)

    def _climb(self, runs, parallel, progress, fitted):
        """Advance all starts in rounds, in place, until they converge.

        Returns whether a callback said stop.
        """
        step, limit = _advance_variational, self.max_iter
        if self.inference == "exact":
            step, limit = _advance, min(limit, HANDOVER)
        for done in range(0, limit, ROUND):
            n_steps = min(ROUND, limit - done)
            moving = [i for i, run in enumerate(runs) if not run.converged]
            results = parallel(
                delayed(step)(runs[i], n_steps, self.tol) for i in moving
            )
            for i, run in zip(moving, results, strict=True):
                runs[i] = run
            left = sum(not run.converged for run in runs)
            if not left:
                break
            if progress(
                f"iteration {done + n_steps}, {left} of {len(runs)} starts go on",
                **fitted(_best_runs(runs)),
            ):
                return True
        return False


@dataclass
class _Run:
    """A start of EM on a component, how far it has come, and the bound it has there."""

    part: Component
    patterns: Patterns
    parameters: Parameters
    shares: np.ndarray | None = None
    bound: float = -np.inf
    n_iter: int = 0
    converged: bool = False

    @property
    def structure(self) -> np.ndarray:
        return self.parameters.failure < 1.0


def _advance(run: _Run, n_steps, tol) -> _Run:
    """Take some steps of exact EM."""
    ascent = climb_exact(run.parameters, run.patterns, tol=tol, max_iter=n_steps)
    return _moved(run, ascent, ascent.state)


def _advance_variational(run: _Run, n_steps, tol) -> _Run:
    """Take some steps of variational EM."""
    em = VariationalEM(run.structure, run.patterns)
    shares = em.start() if run.shares is None else run.shares
    ascent = em.climb(run.parameters, shares, tol=tol, max_iter=n_steps)
    return replace(_moved(run, ascent, ascent.state[0]), shares=ascent.state[1])


def _moved(run, ascent, parameters) -> _Run:
    return replace(
        run,
        parameters=parameters,
        bound=float(ascent.objective),
        n_iter=run.n_iter + ascent.n_iter,
        converged=ascent.converged,
    )


def _best_runs(runs):
    """Pick the best start of each component."""
    best: dict[bytes, _Run] = {}
    for run in runs:
        key = run.part.features.tobytes() + run.part.latents.tobytes()
        if key not in best or run.bound > best[key].bound:
            best[key] = run
    return list(best.values())


def _polish(run: _Run, max_iter) -> _Run:
    """Go from where EM stopped to the maximum, within the limit of iterations."""
    if run.n_iter >= max_iter:
        return run
    left = max_iter - run.n_iter
    fit = maximize_likelihood(
        run.parameters, run.structure, run.patterns, max_iter=left
    )
    return replace(
        run,
        parameters=Parameters(*fit[:3]),
        bound=fit.log_likelihood,
        n_iter=run.n_iter + fit.n_iter,
        converged=fit.converged,
    )


def _fitted(structure, runs):
    """Fitted attributes from one run per component."""
    values = Parameters(
        np.empty(len(structure)), np.ones(structure.shape), np.empty(structure.shape[1])
    )
    for run in runs:
        values.put(run.part, run.parameters)
    total = runs[0].patterns.weights.sum() if runs else 1.0
    return network_attributes(NoisyOrNetwork(*values)) | {
        "lower_bound_": float(sum(run.bound for run in runs) / total),
        "n_iter_": max((run.n_iter for run in runs), default=0),
        "converged_": all(run.converged for run in runs),
    }
