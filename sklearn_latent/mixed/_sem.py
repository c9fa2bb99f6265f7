"""Structural EM: the baseline that is told how many latents there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from .._core.validation import (
    MOST_COLUMNS,
    MOST_ROWS,
    check_choice,
    check_count,
    check_counts,
    check_flag,
    check_random_state,
)
from .._core.warn import warn
from ..exceptions import PoorDataWarning
from ._em.chain_em import EMOptions
from ._em.hybrid import Hybrid
from ._inference.expectation import warn_if_approximate
from ._latent_dbn import MAX_JOINT_STATES
from ._panel_estimator import Forecaster
from ._sem_rounds import structural_em


class SEMDBN(Forecaster):
    """Latent dynamic Bayesian network by structural EM.

    The baseline of [1]_: it must be told the number of latents and their numbers of
    states, starts from random pure measurement models, and takes turns between EM [2]_
    and the structure of highest expected score: features go to the latent that explains
    them best, and edges between latents are those of highest BIC. Each round runs
    forward-backward over all sequences many times, and a start may end in a poor local
    optimum, so that several are needed. On small panels with few latents it is often
    faster than `LGLPCCTemporal`, because it has less to find; where latents are many it
    is slow, because their joint states are enumerated. `LGLPCCTemporal` needs neither
    starts nor to be told how many latents there are.

    Parameters
    ----------
    n_latents : int, default=1
        Number of latents; no more than there are features in a slice.
    cardinality : int or array-like of shape (n_latents,), default=2
        Number of states of the latents.
    n_slices : int, default=1
        Number of slices of a two-dimensional `X`; a three-dimensional one brings its
        own.
    n_init : int, default=5
        Number of random starts, of which the one with the best BIC is kept.
    init : {"classes", "random"}, default="classes"
        First tables of a start: of a latent class model of the features that the start
        gives to each latent, or drawn at random, as is usual.
    max_rounds : int, default=50
        Maximum number of further rounds, each of a structure and EM, of a start.
    max_iter : int, default=200
        Maximum number of EM iterations of a round.
    tol : float, default=1e-4
        EM has converged when its log-posterior gains no more than this per sequence
        and iteration, and the gains are not about to grow again.
    warm_start : bool, default=False
        Whether a further `fit` goes on from the graph and tables of the last one,
        instead of from `n_init` random starts.
    n_bins : int, default=4
        Number of bins of a numeric feature.
    max_categories : int, default=10
        Most values of a feature of integers that stay categories.
    max_joint_states : int, default=500
        Largest number of joint states of the latents for which inference is exact, at
        most 4,096. Above, it is factored, with a warning, and a start gives each latent
        at most two parents.
    n_jobs : int or None, default=None
        Number of starts that run at the same time, through joblib.
    random_state : int, RandomState instance or None, default=None
        Source of the random starts.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    structure_ : ndarray of bool of shape (n_latents, n_observed)
        Features of each latent.
    intra_ : ndarray of bool of shape (n_latents, n_latents)
        Edges within a slice, ``[i, j]`` = i -> j.
    inter_ : ndarray of bool of shape (n_latents, n_latents)
        Edges into the next slice.
    graph_ : TemporalGraph
        The three matrices as one object.
    cardinality_ : ndarray of int of shape (n_latents,)
        Number of states of each latent.
    network_ : LatentDBN
        The fitted model.
    start_, transition_, emission_ : list of ndarray
        Its tables.
    categories_ : list of ndarray
        Values of each feature; for a binned one, a typical value of each bin.
    n_latents_ : int
        Number of latents.
    log_likelihood_ : float
        Log-likelihood of the training sequences; a lower bound if `is_exact_` is False.
    bic_ : float
        Bayesian information criterion of the training sequences; lower is better.
    is_exact_ : bool
        Whether inference is exact, with at most `max_joint_states` joint states.
    bics_ : ndarray of shape (n_starts,)
        The same for each start; lower is better.
    history_ : list of (str, float)
        Structures of the rounds of the best start, and what the BIC gained.
    n_iter_ : int
        Rounds of EM of the best start.
    converged_ : bool
        Whether the best start ended because no other structure helped.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if `X` has string names.

    See Also
    --------
    LGLPCCTemporal : Finds the number of latents and of their states.

    References
    ----------
    .. [1] Halbersberg, D., Lerner, B. (2020). Local to global learning of a latent
       dynamic Bayesian network. ECAI.
    .. [2] Friedman, N. (1998). The Bayesian structural EM algorithm. UAI.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_latent_dbn
    >>> from sklearn_latent.mixed import SEMDBN
    >>> data = make_latent_dbn("G1", n_sequences=300, n_slices=4, random_state=0)
    >>> model = SEMDBN(n_latents=1, cardinality=4, n_slices=4, random_state=0)
    >>> model.fit(data.X).graph_
    TemporalGraph(n_latents=1, n_observed=3, n_intra=0, n_inter=1)
    """

    # Structures are compared by tables of categories.
    emissions = "categorical"
    bics_: np.ndarray
    history_: list[tuple[str, float]]

    def __init__(
        self,
        n_latents: int = 1,
        cardinality: ArrayLike = 2,
        n_slices: int = 1,
        *,
        n_init: int = 5,
        init: str = "classes",
        max_rounds: int = 50,
        max_iter: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        n_bins: int = 4,
        max_categories: int = 10,
        max_joint_states: int = MAX_JOINT_STATES,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_latents = n_latents
        self.cardinality = cardinality
        self.n_slices = n_slices
        self.n_init = n_init
        self.init = init
        self.max_rounds = max_rounds
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_bins = n_bins
        self.max_categories = max_categories
        self.max_joint_states = max_joint_states
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _max_steps(self, X) -> int:
        return self.n_init

    def _learn(self, X, sample_weight, progress):
        """From sequences to fitted attributes."""
        rng = check_random_state(self.random_state)
        training = self._read_training(X, sample_weight)
        panel = training.panel.merged()
        cardinality = self._check_cardinality(panel.n_observed)
        last = self._last_network(cardinality, panel.n_categories)
        n_starts = int(self.n_init) if last is None else 1
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_starts)
        search = delayed(structural_em)
        runs = []
        for run in Parallel(n_jobs=self.n_jobs, return_as="generator")(
            search(
                panel,
                cardinality,
                self.init if last is None else last,
                EMOptions(self.max_iter, self.tol, self.max_joint_states),
                max_rounds=self.max_rounds,
                random_state=int(seed),
            )
            for seed in seeds
        ):
            runs.append(run)
            if progress(f"start {len(runs)} of {n_starts}, BIC {run.bic:.6g}"):
                break
        best = min(runs, key=lambda run: run.bic)
        warn_if_approximate(best.network, together=True)
        self._store(best.network, training.encoder, Hybrid(panel))
        self._store_fit(
            best.log_likelihood,
            training.sample.total,
            is_exact=best.network.is_exact(),
        )
        self.bics_ = np.array([run.bic for run in runs])
        self.history_ = best.history
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged

    def _check_parameters(self):
        super()._check_parameters()
        check_choice("init", self.init, ("classes", "random"))
        check_count("max_rounds", self.max_rounds, 0)
        check_count("n_latents", self.n_latents, 1, MOST_COLUMNS)
        check_count("n_init", self.n_init, 1, MOST_ROWS)
        check_flag("warm_start", self.warm_start)

    def _last_network(self, cardinality, n_categories):
        """Where to go on, or None: from random starts."""
        if not self.warm_start or not hasattr(self, "network_"):
            return None
        network = self.network_
        sizes = cardinality.tolist(), np.asarray(n_categories).tolist()
        last = network.cardinality.tolist(), network.n_categories.tolist()
        if sizes != last:
            raise ValueError(
                "warm_start must go on with the numbers of states and of categories of "
                f"the last fit, {last}, got {sizes}."
            )
        return network

    def _check_cardinality(self, n_observed: int) -> np.ndarray:
        """Number of states of as many latents as there are features for."""
        cards = check_counts("cardinality", self.cardinality)
        if cards.ndim == 0:
            cards = np.full(self.n_latents, cards)
        if cards.shape != (self.n_latents,):
            raise ValueError(
                "cardinality must be an integer or one per latent, shape "
                f"({self.n_latents},), got {self.cardinality!r}."
            )
        if self.n_latents > n_observed:
            warn(
                f"n_latents={self.n_latents} latents need as many features in a slice, "
                f"got {n_observed}; only {n_observed} are used.",
                PoorDataWarning,
            )
        return cards[:n_observed]
