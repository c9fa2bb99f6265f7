"""The model object: a Gaussian network, its sampling and its likelihood."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils import check_array, check_random_state

from .._graphs import topological_order
from .._persistence import Array, Choice, Integer, Names, Persistent
from .._validation import MOST_ROWS, check_count, check_names, check_numbers
from ._checks import check_network, within_range
from ._inference.inference import Joint, condition
from ._nonlinear.links import Linear, get_link
from ._nonlinear.noise import Additive, get_noise

__all__ = ["LARGEST", "GaussianNetwork"]

# Largest value of the data: squares, and products of variances, must not overflow.
LARGEST = 1e100


class GaussianNetwork(Persistent):
    """A directed network of continuous variables with Gaussian noise.

    Nodes are the features, then the hidden variables. The mean of a node is a link
    function of the weighted sum of its parents.

    Parameters
    ----------
    adjacency : array-like of bool of shape (n_nodes, n_nodes)
        ``[i, j]`` = i -> j; without directed cycles.

    weights : array-like of shape (n_nodes, n_nodes)
        ``[i, j]`` is the coefficient of i in j; 0 without an edge.

    intercept : array-like of shape (n_nodes,)
        Mean of a node when all of its parents are zero (linear link), or of a node
        without parents.

    noise_variance : array-like of shape (n_nodes,)
        Variance of the noise: added to the mean, or of the factor that multiplies it.

    link : str or Link, default="linear"
        Link function of all nodes that have parents.

    noise : {"additive", "multiplicative"}, default="additive"
        Noise of all nodes that have parents; others have additive noise.

    link_parameters : array-like of shape (n_nodes, 2 or 3) or None, default=None
        Offset, scale and bias (or none) of the link function of each node; the offset
        and scale of the sigmoid are theta_0 and theta_1 of the paper. Not used by
        linear links.

    n_latents : int, default=0
        How many of the last nodes are hidden.

    node_names : sequence of str or None, default=None
        None stands for x0, x1, ... and latent0, latent1, ...

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian import GaussianNetwork
    >>> weights = np.array([[0.0, 2.0], [0.0, 0.0]])
    >>> network = GaussianNetwork(weights != 0, weights, [1.0, 0.0], [1.0, 0.5])
    >>> mean, covariance = network.joint()
    >>> mean
    array([1., 2.])
    >>> covariance
    array([[1. , 2. ],
           [2. , 4.5]])
    >>> X, Z = network.sample(5, random_state=0)
    >>> X.shape, Z.shape
    ((5, 2), (5, 0))
    """

    _fields: ClassVar = {
        "adjacency": Array("bool", 2),
        "weights": Array(ndim=2),
        "intercept": Array(ndim=1),
        "noise_variance": Array(ndim=1),
        "link": Choice(("linear", "sigmoid")),
        "noise": Choice(("additive", "multiplicative")),
        "link_parameters": Array(ndim=2, optional=True),
        "n_latents": Integer(),
        "node_names": Names(),
    }

    def __init__(
        self,
        adjacency,
        weights,
        intercept,
        noise_variance,
        *,
        link="linear",
        noise="additive",
        link_parameters=None,
        n_latents=0,
        node_names=None,
    ):
        self.adjacency = check_numbers("adjacency", adjacency, dtype=bool)
        self.weights = check_numbers("weights", weights)
        self.intercept = check_numbers("intercept", intercept)
        self.noise_variance = check_numbers("noise_variance", noise_variance)
        self.link = link
        self.noise = noise
        self.link_parameters = (
            None
            if link_parameters is None
            else check_numbers("link_parameters", link_parameters)
        )
        self._link, self._noise = get_link(link), get_noise(noise)
        self.n_latents = n_latents
        check_network(self)
        n_nodes = len(self.intercept)
        if node_names is None:
            node_names = [f"x{i}" for i in range(n_nodes - self.n_latents)]
            node_names += [f"latent{i}" for i in range(self.n_latents)]
        self.node_names = check_names("node_names", node_names, n_nodes)
        self.topological_order = topological_order(self.adjacency)

    def __repr__(self):
        return (
            f"GaussianNetwork({self.n_features} features, {self.n_latents} hidden, "
            f"{int(self.adjacency.sum())} edges, link={self.link!r})"
        )

    @property
    def n_nodes(self) -> int:
        """Number of features and hidden nodes."""
        return len(self.intercept)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_nodes - self.n_latents

    @property
    def is_jointly_gaussian(self) -> bool:
        """Whether all nodes together have a multivariate normal distribution."""
        return isinstance(self._link, Linear) and isinstance(self._noise, Additive)

    @property
    def n_parameters(self) -> int:
        """Free parameters: weights, parameters of the links, noise variances."""
        means = self._link.n_parameters(self.adjacency.sum(axis=0))
        return int(np.sum(means)) + self.n_nodes

    @within_range
    def joint(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of all nodes; for linear links and additive noise only.

        Returns
        -------
        mean : ndarray of shape (n_nodes,)
            Mean of each node.

        covariance : ndarray of shape (n_nodes, n_nodes)
            Covariance of the nodes, features first.
        """
        if not self.is_jointly_gaussian:
            raise ValueError(
                "the joint distribution is Gaussian only with link='linear' and "
                f"noise='additive', got {self.link!r} and {self.noise!r}."
            )
        order = self.topological_order
        # In topological order I - B is unit upper triangular.
        upper = np.eye(self.n_nodes) - self.weights[np.ix_(order, order)]
        total = np.empty((self.n_nodes, self.n_nodes))
        if self.n_nodes:  # LAPACK knows no empty matrices
            total[np.ix_(order, order)] = solve_triangular(
                upper, np.eye(self.n_nodes), unit_diagonal=True
            )
        covariance = (total.T * self.noise_variance) @ total
        return self.intercept @ total, 0.5 * (covariance + covariance.T)

    def conditional_means(self, values) -> np.ndarray:
        """Mean of each node given the values of its parents.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_nodes)
            Values of all nodes.

        Returns
        -------
        means : ndarray of shape (n_samples, n_nodes)
            What each node's parents say of it.
        """
        return self.family_means(values @ self.weights, np.arange(self.n_nodes))

    def family_means(self, eta, nodes) -> np.ndarray:
        """Means of some nodes from the weighted sums of their parents.

        Parameters
        ----------
        eta : ndarray of shape (..., n_chosen)
            Weighted sums.

        nodes : array-like of int of shape (n_chosen,)
            The nodes.

        Returns
        -------
        means : ndarray of the shape of `eta`
            Link functions of the sums; intercepts for nodes without parents.
        """
        if isinstance(self._link, Linear) or self.link_parameters is None:
            return eta + self.intercept[nodes]
        has_parents = self.adjacency[:, nodes].any(axis=0)
        values = self._link.value(eta, self.link_parameters[nodes])
        return np.where(has_parents, values, self.intercept[nodes])

    def log_densities(self, values, means, nodes) -> np.ndarray:
        """Log-densities of some nodes around their means.

        Parameters
        ----------
        values, means : ndarray whose last axis is that of `nodes`
            Values, and what the parents say of them.

        nodes : ndarray of int
            The nodes.

        Returns
        -------
        log_density : ndarray
            As `values`.
        """
        variance = self.noise_variance[nodes]
        additive = Additive().log_density(values, means, variance)
        if isinstance(self._noise, Additive):
            return additive
        noisy = self._noise.log_density(values, self._noise.clip(means), variance)
        return np.where(self.adjacency[:, nodes].any(axis=0), noisy, additive)

    def family_log_likelihoods(self, values) -> np.ndarray:
        """Log-density of each node given its parents.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_nodes)
            Values of all nodes.

        Returns
        -------
        log_density : ndarray of shape (n_samples, n_nodes)
            They sum to the log-density of the row.
        """
        means = self.conditional_means(values)
        return self.log_densities(values, means, np.arange(self.n_nodes))

    @within_range
    def log_likelihood(self, X) -> np.ndarray:
        """Log-likelihood of each row over its observed entries.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Exact if nothing is missing and nothing hidden, and for linear links with
            additive noise; else the mean-field lower bound.
        """
        X = self._check(X)
        if self.n_latents == 0 and not np.isnan(X).any():
            return self.family_log_likelihoods(X).sum(axis=1)
        if self.is_jointly_gaussian:
            return condition(self._joint(), X)[1]
        from ._inference.mean_field import infer

        return infer(self, X)[1]

    def _check(self, X) -> np.ndarray:
        """Rows as an array of numbers with a column per feature."""
        X = check_array(
            X,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name="X",
        )
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have one column per feature, {self.n_features}, got shape "
                f"{X.shape}."
            )
        if np.nanmax(np.abs(X), initial=0.0) > LARGEST:
            raise ValueError(
                f"X must hold values up to {LARGEST:g} in size, whose squares can be "
                "summed, got a larger one."
            )
        return X

    def _joint(self) -> Joint:
        return Joint(self.weights, self.intercept, self.noise_variance)

    @within_range
    def expectation(self, X) -> np.ndarray:
        """Complete the rows: expected value of every node given the observed ones.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        completed : ndarray of shape (n_samples, n_nodes)
            Observed entries as they are, expectations elsewhere.
        """
        X = self._check(X)
        if self.n_latents == 0 and not np.isnan(X).any():
            return np.array(X, dtype=float)
        if self.is_jointly_gaussian:
            return condition(self._joint(), X)[0]
        from ._inference.mean_field import infer

        return infer(self, X)[0]

    @within_range
    def leave_one_out(self, X) -> np.ndarray:
        """Predict each feature from the other observed values of its row.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        predicted : ndarray of shape (n_samples, n_features)
            Expected values; a missing value is predicted from all observed ones.
        """
        X = self._check(X)
        if self.is_jointly_gaussian:
            from ._inference.inference import leave_one_out

            return leave_one_out(self._joint(), X)
        from ._inference.leave_one_out import integrate_features

        return integrate_features(self, X)

    @within_range
    def sample(self, n_samples=1, random_state=None) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows, parents before children.

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
            Hidden nodes.
        """
        n_samples = check_count("n_samples", n_samples, high=MOST_ROWS)
        rng = check_random_state(random_state)
        values = np.zeros((n_samples, self.n_nodes))
        for node in self.topological_order.tolist():
            nodes = np.array([node])
            parents = np.flatnonzero(self.adjacency[:, node])
            eta = values[:, parents] @ self.weights[np.ix_(parents, nodes)]
            noise = self._noise if len(parents) else Additive()
            values[:, nodes] = noise.draw(
                self.family_means(eta, nodes), self.noise_variance[node], rng
            )
        return values[:, : self.n_features], values[:, self.n_features :]
