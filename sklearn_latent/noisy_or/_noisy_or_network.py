"""The model object: a bipartite noisy-or Bayesian network."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import gen_batches

from .._answers.protocol import GraphParts, Network
from .._core.persistence import Array
from .._core.validation import MOST_ROWS, check_choice, check_count, check_random_state
from .._core.warn import warn
from ..exceptions import ApproximateInferenceWarning
from ._noisy_or_graph import graph_of, pgmpy_of
from ._posterior import METHODS, Inference, infer_network
from ._probabilities import (
    EPSILON,
    check_polarity,
    check_priors,
    check_sets,
    check_weights,
    clip_probability,
    frozen,
    probabilities,
    safe_log,
    split_rows,
)
from ._statistics.moments import negative_moments

# Elements of the largest temporary array. 2 MB stay in the cache, and the allocator
# recycles them where it would map larger blocks anew: twice the speed in sampling.
CHUNK_ELEMENTS = 1 << 18


class NoisyOrNetwork(Network):
    """Bipartite noisy-or network of binary latents and binary features.

    A feature stays off if its leak and every parent that is on fail to switch it on,
    each independently [1]_. Latents are on independently of each other, or
    independently given a hidden class that each row belongs to.

    Parameters
    ----------
    prior : array-like of shape (n_latents,) or (n_classes, n_latents)
        P(latent on), or P(latent on | class) together with `class_weight`.
    failure : array-like of shape (n_latents, n_features)
        Probability that a latent that is on fails to switch a feature on; 1.0 means
        that there is no edge.
    leak : array-like of shape (n_features,)
        P(feature on | all latents off).
    class_weight : array-like of shape (n_classes,) or None, default=None
        P(class), positive. None: latents are independent.
    polarity : array-like of shape (n_features,) or None, default=None
        1 or -1 for each feature. A feature of polarity -1 is read as its opposite:
        latents switch it *off*, `failure` and `leak` speak of the opposite column. Rows
        that are given to the network, or drawn from it, are not recoded. None: all 1.

    Attributes
    ----------
    prior : ndarray of shape (n_latents,)
        P(latent on), over all classes.
    failure, leak : ndarray
        The parameters as read-only float arrays.
    class_prior : ndarray of shape (n_classes, n_latents)
        P(latent on | class).
    class_weight : ndarray of shape (n_classes,)
        P(class).
    polarity : int8 ndarray of shape (n_features,)
        1, or -1 where the feature is read as its opposite.
    structure : bool ndarray of shape (n_latents, n_features)
        Where there is an edge.
    n_latents, n_features, n_classes : int
        Numbers of latents, features and classes; 1 class: independent latents.

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

    Two classes of rows, and a feature that the latent switches off:

    >>> network = NoisyOrNetwork(
    ...     [[0.9], [0.1]], [[0.2, 0.4]], [0.0, 0.0],
    ...     class_weight=[0.5, 0.5], polarity=[1, -1],
    ... )
    >>> network.prior
    array([0.5])
    >>> network.class_posterior([[1, 0]]).round(3)
    array([[0.9, 0.1]])
    """

    _fields: ClassVar = {
        "prior": Array(),
        "failure": Array(ndim=2),
        "leak": Array(ndim=1),
        "class_weight": Array(ndim=1, optional=True, omitted=True),
        "polarity": Array("int", ndim=1, optional=True, omitted=True),
    }

    failure: NDArray[np.float64]
    leak: NDArray[np.float64]
    class_prior: NDArray[np.float64]
    class_weight: NDArray[np.float64]
    polarity: NDArray[np.int8]

    def __init__(
        self,
        prior: ArrayLike,
        failure: ArrayLike,
        leak: ArrayLike,
        *,
        class_weight: ArrayLike | None = None,
        polarity: ArrayLike | None = None,
    ):
        self.class_weight = check_weights(class_weight)
        n_classes = None if class_weight is None else self.n_classes
        self.class_prior = check_priors(prior, n_classes)
        self.failure = probabilities("failure", failure, 2)
        self.leak = probabilities("leak", leak, 1)
        expected = (len(self.prior), len(self.leak))
        if self.failure.shape != expected:
            raise ValueError(
                f"failure must have one row per prior and one column per leak, shape "
                f"{expected}, got shape {self.failure.shape}."
            )
        self.polarity = check_polarity(polarity, len(self.leak))

    def _arguments(self) -> dict[str, Any]:
        has_classes = self.n_classes > 1
        return {
            "prior": self.class_prior if has_classes else self.prior,
            "failure": self.failure,
            "leak": self.leak,
            "class_weight": self.class_weight if has_classes else None,
            "polarity": self.polarity if (self.polarity < 0).any() else None,
        }

    @classmethod
    def _of(cls, prior, failure, leak) -> NoisyOrNetwork:
        """A network that is not checked; see `_with`."""
        new = object.__new__(cls)
        new.class_weight, new.class_prior = np.ones(1), np.asarray(prior)[np.newaxis]
        new.failure, new.leak = failure, leak
        new.polarity = np.ones(len(leak), dtype=np.int8)
        return new

    @classmethod
    def _independent(cls, leak) -> NoisyOrNetwork:
        """A network without latents."""
        return cls._of(np.zeros(0), np.ones((0, len(leak))), leak)

    def _with(self, **changes) -> NoisyOrNetwork:
        """The same with some other arrays, unchecked: learners make thousands."""
        new = object.__new__(NoisyOrNetwork)
        for name in ("class_weight", "class_prior", "failure", "leak", "polarity"):
            new.__dict__[name] = changes.get(name, self.__dict__[name])
        return new

    def _checked(self) -> NoisyOrNetwork:
        """The same with arrays that are valid and cannot be written to."""
        return NoisyOrNetwork(**self._arguments())

    def _clipped(self, least=EPSILON) -> NoisyOrNetwork:
        """Keep probabilities away from 0 and 1, and non-edges at 1."""
        failure = clip_probability(self.failure, least)
        return self._with(
            class_prior=clip_probability(self.class_prior, least),
            failure=np.where(self.structure, failure, 1.0),
            leak=clip_probability(self.leak, least),
        )

    def _given_class(self, number) -> NoisyOrNetwork:
        """The network of the rows of one class."""
        prior = self.class_prior[[number]]
        return self._with(class_weight=np.ones(1), class_prior=prior)

    def _keep(self, latents) -> NoisyOrNetwork:
        """Drop all other latents."""
        prior, failure = self.class_prior[:, latents], self.failure[latents]
        return self._with(class_prior=prior, failure=failure)

    def _part(self, latents, features) -> NoisyOrNetwork:
        """Some latents and features alone."""
        return self._keep(latents)._with(
            failure=self.failure[np.ix_(latents, features)],
            leak=self.leak[features],
            polarity=self.polarity[features],
        )

    def _with_parts(self, parts) -> NoisyOrNetwork:
        """Other parameters of some components: pairs of a component and a network."""
        prior, failure = np.array(self.class_prior), np.array(self.failure)
        leak = np.array(self.leak)
        for (latents, features), part in parts:
            prior[:, latents], leak[features] = part.class_prior, part.leak
            failure[np.ix_(latents, features)] = part.failure
        return self._with(class_prior=prior, failure=failure, leak=leak)

    def _with_latents(self, prior, failure) -> NoisyOrNetwork:
        """Further latents, with the same prior in all classes."""
        new = np.broadcast_to(prior, (self.n_classes, len(failure)))
        return self._with(
            class_prior=np.hstack([self.class_prior, new]),
            failure=np.vstack([self.failure, failure]),
        )

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """P(latent on), over all classes."""
        if self.n_classes == 1:
            return self.class_prior[0]
        # Sums of products may exceed 1 by rounding.
        return frozen(np.minimum(self.class_weight @ self.class_prior, 1.0))

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
    def n_classes(self) -> int:
        """Number of classes above the latents; 1: latents are independent."""
        return len(self.class_weight)

    @property
    def n_parameters(self) -> int:
        """Free parameters: class weights, priors, one failure per edge, leaks."""
        layers = self.n_classes - 1 + self.class_prior.size
        return layers + int(self.structure.sum()) + self.n_features

    def __repr__(self) -> str:
        parts = {
            "n_latents": self.n_latents,
            "n_features": self.n_features,
            "n_edges": int(self.structure.sum()),
        }
        if self.n_classes > 1:
            parts["n_classes"] = self.n_classes
        if (self.polarity < 0).any():
            parts["n_flipped"] = int((self.polarity < 0).sum())
        return f"NoisyOrNetwork({', '.join(f'{k}={v}' for k, v in parts.items())})"

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
            prior = self.prior
            if self.n_classes > 1:
                chance = rng.random_sample(len(Z[rows])) * self.class_weight.sum()
                ends = np.cumsum(self.class_weight[:-1])
                prior = self.class_prior[np.searchsorted(ends, chance, side="right")]
            Z[rows] = rng.random_sample(Z[rows].shape) < prior
            # Sparse, so that a latent that is off never meets a log(0).
            off = sparse.csr_array(Z[rows], dtype=np.float64) @ log_failure
            if sparse.issparse(off):
                off.data = np.expm1(off.data)
                off = off.toarray() + 1.0
            else:
                off = np.exp(off)
            off *= 1.0 - self.leak
            X[rows] = rng.random_sample(off.shape) >= off
        X ^= self.polarity < 0
        return X, Z

    def negative_moment(self, features: ArrayLike) -> Any:
        """P(all of some features off); equation 3 of Halpern and Sontag (2013).

        Features are taken as the network reads them: for one of polarity -1, off means
        that the column is 1.

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
        sets = check_sets(features, self.n_features)
        table = np.sort(np.atleast_2d(sets), axis=1)
        moments = np.zeros(len(table))
        for weight, prior in zip(self.class_weight, self.class_prior, strict=True):
            moments += weight * negative_moments(prior, self.failure, self.leak, table)
        return float(moments[0]) if sets.ndim == 1 else moments

    def log_likelihood(self, X: Any, method: str = "auto") -> NDArray[np.float64]:
        """Log-probability of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of 0 and 1, or booleans; NaN is missing and is summed out.
        method : {"auto", "exact"}, default="auto"
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
        method : {"auto", "exact"}, default="auto"
            "exact" raises ValueError if some row is out of reach. "auto" gives those
            rows the sum over their likeliest states, a lower bound, and warns with
            `ApproximateInferenceWarning`.

        Returns
        -------
        posterior : ndarray of shape (n_samples, n_latents)
            Probabilities. A row that the network cannot produce has no posterior and
            gets the prior.
        """
        return self._infer(X, method).posterior

    def class_posterior(self, X: Any, method: str = "auto") -> NDArray[np.float64]:
        """P(class | row) for each row and class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of 0 and 1, or booleans; NaN is missing.
        method : {"auto", "exact"}, default="auto"
            As in `posterior`.

        Returns
        -------
        class_posterior : ndarray of shape (n_samples, n_classes)
            Probabilities. A row that the network cannot produce gets the weights of
            the classes.
        """
        return self._infer(X, method).class_posterior

    def _infer(self, X, method) -> Inference:
        """Infer latents and classes, and warn of rows out of reach."""
        check_choice("method", method, METHODS)
        on, observed = split_rows(X, self.n_features)
        found = infer_network(self, on, observed, method)
        if method == "auto":
            warn_of_bounds(found.is_bound, "rows")
        return found

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.n_latents, self.n_features

    def _graph(self, latents: list, features: list) -> GraphParts:
        return graph_of(self, latents, features)

    def _pgmpy(self, latents: list, features: list) -> Any:
        return pgmpy_of(self, latents, features)


def warn_of_bounds(is_bound, what: str) -> None:
    """Warn if some answers come from lower bounds of the likelihood."""
    if is_bound.any():
        warn(
            f"Exact inference is out of reach for {is_bound.sum()} of {len(is_bound)} "
            f"{what}, whose positive findings couple too many latents; they got a "
            "lower bound, the sum over the likeliest states.",
            ApproximateInferenceWarning,
        )
