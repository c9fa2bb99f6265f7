"""The model object: a bipartite noisy-or Bayesian network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_random_state, gen_batches

from .._network import Network
from .._persistence import Array
from .._validation import (
    MOST_ROWS,
    check_choice,
    check_count,
    check_numbers,
    check_probabilities,
    shown,
)
from .._warn import warn
from ..exceptions import ApproximateInferenceWarning
from ._export import noisy_or_to_networkx, noisy_or_to_pgmpy
from ._inference.inference import METHODS, Inference, infer
from ._numerics import safe_log
from ._statistics.moments import negative_moments

if TYPE_CHECKING:
    import networkx as nx

# Elements of the largest temporary array. 2 MB stay in the cache, and the allocator
# recycles them where it would map larger blocks anew: twice the speed in sampling.
CHUNK_ELEMENTS = 1 << 18


class NoisyOrNetwork(Network):
    """Bipartite noisy-or network of binary latents and binary features.

    Latents are on independently of each other. A feature stays off if its leak and
    every parent that is on fail to switch it on, each independently [1]_.

    Parameters
    ----------
    prior : array-like of shape (n_latents,)
        P(latent on).
    failure : array-like of shape (n_latents, n_features)
        Probability that a latent that is on fails to switch a feature on; 1.0 means
        that there is no edge.
    leak : array-like of shape (n_features,)
        P(feature on | all latents off).

    Attributes
    ----------
    prior, failure, leak : ndarray
        The parameters as read-only float arrays.
    structure : bool ndarray of shape (n_latents, n_features)
        Where there is an edge.
    n_latents, n_features : int
        Numbers of latents and features.

    See Also
    --------
    sklearn_latent.NoisyOrMoMLearner : Learns the parameters from moments.
    sklearn_latent.NoisyOrEM : Learns the parameters by maximum likelihood.

    References
    ----------
    .. [1] Halpern, Y., Sontag, D. (2013). Unsupervised learning of noisy-or Bayesian
       networks. UAI.

    Examples
    --------
    >>> from sklearn_latent import NoisyOrNetwork
    >>> network = NoisyOrNetwork([0.5], [[0.2, 0.4, 1.0]], [0.0, 0.0, 0.1])
    >>> round(network.negative_moment([0, 1]), 3)
    0.54
    >>> network.posterior([[0, 0, 1], [0, 1, 1]]).round(3)
    array([[0.074],
           [1.   ]])
    >>> NoisyOrNetwork.from_json(network.to_json()) == network
    True
    """

    _fields: ClassVar = {
        "prior": Array(ndim=1),
        "failure": Array(ndim=2),
        "leak": Array(ndim=1),
    }

    prior: NDArray[np.float64]
    failure: NDArray[np.float64]
    leak: NDArray[np.float64]

    def __init__(self, prior: ArrayLike, failure: ArrayLike, leak: ArrayLike):
        self.prior = _probabilities("prior", prior, 1)
        self.failure = _probabilities("failure", failure, 2)
        self.leak = _probabilities("leak", leak, 1)
        expected = (len(self.prior), len(self.leak))
        if self.failure.shape != expected:
            raise ValueError(
                f"failure must have one row per prior and one column per leak, shape "
                f"{expected}, got shape {self.failure.shape}."
            )

    @property
    def structure(self) -> NDArray[np.bool_]:
        """Where there is an edge, shape (n_latents, n_features)."""
        return self.failure < 1.0

    @property
    def n_latents(self) -> int:
        """Number of latents."""
        return len(self.prior)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.leak)

    @property
    def n_parameters(self) -> int:
        """Free parameters: priors, one failure per edge, leaks."""
        return self.n_latents + int(self.structure.sum()) + self.n_features

    def __repr__(self) -> str:
        return (
            f"NoisyOrNetwork(n_latents={self.n_latents}, "
            f"n_features={self.n_features}, n_edges={int(self.structure.sum())})"
        )

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Draw rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : int8 ndarray of shape (n_samples, n_features)
            Features.
        Z : int8 ndarray of shape (n_samples, n_latents)
            Latents.
        """
        n_samples = check_count("n_samples", n_samples, high=MOST_ROWS)
        rng = check_random_state(random_state)
        X = np.empty((n_samples, self.n_features), dtype=np.int8)
        Z = np.empty((n_samples, self.n_latents), dtype=np.int8)
        log_failure = safe_log(self.failure)
        if np.count_nonzero(log_failure) < 0.1 * log_failure.size:
            log_failure = sparse.csr_array(log_failure)
        step = max(1, CHUNK_ELEMENTS // max(1, self.n_features + self.n_latents))
        for rows in gen_batches(n_samples, step):
            Z[rows] = rng.random_sample(Z[rows].shape) < self.prior
            # Sparse, so that a latent that is off never meets a log(0).
            off = sparse.csr_array(Z[rows], dtype=np.float64) @ log_failure
            if sparse.issparse(off):
                off.data = np.expm1(off.data)
                off = off.toarray() + 1.0
            else:
                off = np.exp(off)
            off *= 1.0 - self.leak
            X[rows] = rng.random_sample(off.shape) >= off
        return X, Z

    def negative_moment(self, features: ArrayLike) -> Any:
        """P(all of some features off); equation 3 of Halpern and Sontag (2013).

        Parameters
        ----------
        features : array-like of int of shape (k,) or (n_sets, k)
            Indices of one set of features, or of one set per row. A feature that is
            named twice counts once; the empty set has probability 1.

        Returns
        -------
        moment : float or ndarray of shape (n_sets,)
            A number for one set, an array for several.
        """
        sets = self._check_sets(features)
        table = np.sort(np.atleast_2d(sets), axis=1)
        moments = negative_moments(self.prior, self.failure, self.leak, table)
        return float(moments[0]) if sets.ndim == 1 else moments

    def _check_sets(self, features):
        try:
            sets = np.asarray(features)
        except ValueError:  # sets of different sizes
            sets = np.empty(1, dtype=object)
        if sets.size == 0:
            sets = sets.astype(np.intp)
        if sets.ndim not in (1, 2) or sets.dtype.kind not in "iu":
            raise ValueError(
                "features must be a list of feature indices or a 2-d array with one "
                f"set per row, got {shown(features)}."
            )
        if sets.size and not 0 <= sets.min() <= sets.max() < self.n_features:
            raise ValueError(
                f"features must hold indices from 0 to {self.n_features - 1}, got "
                f"values from {sets.min()} to {sets.max()}."
            )
        return sets

    def log_likelihood(self, X: Any, method: str = "auto") -> NDArray[np.float64]:
        """Log-probability of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of 0 and 1, or booleans; NaN is missing and is summed out.
        method : {"auto", "exact", "variational"}, default="auto"
            As in `posterior`; what is not exact is a lower bound.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            In nats; -inf for a row that the network cannot produce.
        """
        return self._infer(X, method).log_likelihood

    def posterior(self, X: Any, method: str = "auto") -> NDArray[np.float64]:
        """P(latent on | row) for each row and latent.

        Negative findings cost nothing and missing ones drop out; the cost is
        exponential only in the smaller number of positive findings and of latents
        that share several of them, of a connected part of the row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of 0 and 1, or booleans; NaN is missing.
        method : {"auto", "exact", "variational"}, default="auto"
            "exact" raises ValueError if some row is out of reach. "auto" gives those
            rows the sum over their likeliest states, a lower bound, and warns with
            `ApproximateInferenceWarning`. "variational" is the mean-field lower bound
            for all rows, cheaper and much looser.

        Returns
        -------
        posterior : ndarray of shape (n_samples, n_latents)
            Probabilities. A row that the network cannot produce has no posterior and
            gets the prior.
        """
        return self._infer(X, method).posterior

    def _infer(self, X, method) -> Inference:
        """Infer, and warn of rows that are out of reach."""
        check_choice("method", method, METHODS)
        on, observed = self._check(X)
        found = infer(self.prior, self.failure, self.leak, on, observed, method)
        if method == "auto":
            warn_of_bounds(found.is_bound, "rows")
        return found

    def _check(self, X):
        """Split rows into the features that are on and those that are known."""
        X = X.toarray() if sparse.issparse(X) else X
        X = check_numbers("X", X, dtype=None)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n_samples, {self.n_features}), got {X.shape}."
            )
        if X.dtype == bool:
            return X, None
        missing = np.isnan(X)
        on = X == 1
        valid = on | (X == 0) | missing
        if not valid.all():
            raise ValueError(
                "X must hold only 0 and 1 (and NaN for missing), got the value "
                f"{X[~valid][0]!r}."
            )
        return on, ~missing if missing.any() else None

    def to_networkx(
        self, latent_names: Any = None, feature_names: Any = None
    ) -> nx.DiGraph:
        """Export as a graph.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes; None: latent0, latent1, ... and x0, x1, ...

        Returns
        -------
        graph : networkx.DiGraph
            Latent and feature nodes, with priors, leaks and failures as attributes.
        """
        return noisy_or_to_networkx(self, latent_names, feature_names)

    def to_pgmpy(self, latent_names: Any = None, feature_names: Any = None) -> Any:
        """Export to pgmpy.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes; None: latent0, latent1, ... and x0, x1, ...

        Returns
        -------
        model : pgmpy.models.DiscreteBayesianNetwork
            With one table per node.
        """
        return noisy_or_to_pgmpy(self, latent_names, feature_names)


def warn_of_bounds(is_bound, what: str) -> None:
    """Warn if some answers come from lower bounds of the likelihood."""
    if is_bound.any():
        warn(
            f"Exact inference is out of reach for {is_bound.sum()} of {len(is_bound)} "
            f"{what}, whose positive findings couple too many latents; they got a "
            "lower bound, the sum over the likeliest states.",
            ApproximateInferenceWarning,
        )


def _probabilities(name, values, ndim):
    """Validate an array of probabilities and freeze a copy of it."""
    array = np.array(check_numbers(name, values))
    if array.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension(s), got shape {array.shape}."
        )
    check_probabilities(name, array)
    array.setflags(write=False)
    return array
