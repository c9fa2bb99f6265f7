"""The model object: a Gaussian network, its sampling and its likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from .._graphs import topological_order
from .._network import Network
from .._persistence import Array, Choice, Integer, Names
from .._validation import (
    MOST_ROWS,
    check_count,
    check_names,
    check_numbers,
    check_random_state,
    within_floats,
)
from ..export import node_names
from ._checks import check_network, within_range
from ._export import to_networkx, to_pgmpy
from ._inference.inference import Joint, condition, leave_one_out
from ._inference.leave_one_out import integrate_features
from ._inference.mean_field import infer
from ._margins.columns import (
    MarginsField,
    check_margins,
    expected_values,
    to_scores,
    to_values,
)
from ._margins.margins import Margin
from ._nonlinear.densities import Densities
from ._nonlinear.links import Link, get_link
from ._nonlinear.noise import Noise, NoiseName, get_noise, noise_name

if TYPE_CHECKING:
    import networkx as nx

# Largest value of the data: squares, and products of variances, must not overflow.
LARGEST = 1e100


class GaussianNetwork(Densities, Network):
    """A directed network of continuous variables with Gaussian noise.

    Nodes are the features, then the latents. The mean of a node is a link
    function of the weighted sum of its parents. With margins, the nodes are normal
    scores of the features; rows, and their densities, are always those of the features.

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
    noise : str or Noise, default="additive"
        "additive", or "student(4)" for Student's t with 4 degrees of freedom: noise of
        all nodes. "multiplicative": of nodes that have parents; others have additive
        noise.
    link_parameters : array-like of shape (n_nodes, 2 or 3) or None, default=None
        Offset, scale and bias (or none) of the link function of each node; the offset
        and scale of the sigmoid are theta_0 and theta_1 of the paper. Not used by
        linear links.
    n_latents : int, default=0
        How many of the last nodes are latents.
    node_names : sequence of str or None, default=None
        None stands for x0, x1, ... and latent0, latent1, ...
    margins : sequence of Margin or None, default=None
        How values of each feature become the scores that the network describes; None
        stands for scores that are the values.

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
        "noise": NoiseName(),
        "link_parameters": Array(ndim=2, optional=True),
        "n_latents": Integer(),
        "node_names": Names(),
        "margins": MarginsField(),
    }

    def __init__(
        self,
        adjacency: ArrayLike,
        weights: ArrayLike,
        intercept: ArrayLike,
        noise_variance: ArrayLike,
        *,
        link: str | Link = "linear",
        noise: str | Noise = "additive",
        link_parameters: ArrayLike | None = None,
        n_latents: int = 0,
        node_names: Sequence | None = None,
        margins: Sequence[Margin] | None = None,
    ) -> None:
        self.adjacency = _own("adjacency", adjacency, bool)
        self.weights = _own("weights", weights)
        self.intercept = _own("intercept", intercept)
        self.noise_variance = _own("noise_variance", noise_variance)
        self.link = link
        self.noise = noise_name(noise)
        self.link_parameters = None
        if link_parameters is not None:
            self.link_parameters = _own("link_parameters", link_parameters)
        self._link, self._noise = get_link(link), get_noise(noise)
        self.n_latents = n_latents
        check_network(self)
        n_nodes = len(self.intercept)
        if node_names is None:
            node_names = [f"x{i}" for i in range(n_nodes - self.n_latents)]
            node_names += [f"latent{i}" for i in range(self.n_latents)]
        self.node_names = check_names("node_names", node_names, n_nodes)
        self.topological_order = topological_order(self.adjacency)
        self.margins = check_margins(margins, self.n_features)
        if self.margins is not None and self._noise.positive:
            raise ValueError(
                f"margins must be None with noise={noise!r}, which needs positive "
                "values where scores are not, got a list."
            )

    def __repr__(self) -> str:
        return (
            f"GaussianNetwork({self.n_features} features, {self.n_latents} latents, "
            f"{int(self.adjacency.sum())} edges, link={self.link!r})"
        )

    @property
    def n_parameters(self) -> int:
        """Free parameters: weights, links, noise variances, margins."""
        means = self._link.n_parameters(self.adjacency.sum(axis=0))
        margins = sum(margin.n_parameters for margin in self.margins or ())
        own = self.n_nodes + self._noise.n_parameters + margins
        return int(np.sum(means)) + own

    def with_margins(self, margins: Sequence[Margin] | None) -> GaussianNetwork:
        """The same network of scores, with other margins.

        Parameters
        ----------
        margins : sequence of Margin or None
            One per feature; None stands for scores that are the values.

        Returns
        -------
        network : GaussianNetwork
            A new network.
        """
        return GaussianNetwork(**(self._arguments() | {"margins": margins}))

    @within_range
    def joint(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of all nodes; for linear links and additive noise only.

        With margins these are moments of the scores.

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
        joint = self._joint()
        return joint.mean, 0.5 * (joint.covariance + joint.covariance.T)

    @within_range
    def log_likelihood(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-likelihood of each row over its observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Exact for complete rows without latents, and for linear links with additive
            noise; else an estimate by importance sampling, and at least the bound of
            mean field.
        """
        Z, log_slope = to_scores(self.margins, self._check(X))
        if self.n_latents == 0 and not np.isnan(Z).any():
            return self._family_log_likelihoods(Z).sum(axis=1) + log_slope
        return self._infer(Z)[1] + log_slope

    def _infer(self, Z):
        """Expected scores, log-likelihoods and variances of incomplete rows."""
        if self.is_jointly_gaussian:
            return condition(self._joint(), Z)
        return infer(self, Z)

    def _check(self, X) -> np.ndarray:
        """Rows as an array of numbers with a column per feature."""
        with within_floats("X"):
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
        check_size(X)
        return X

    def _joint(self) -> Joint:
        return Joint(self.weights, self.intercept, self.noise_variance)

    @within_range
    def expectation(self, X: ArrayLike) -> NDArray[np.float64]:
        """Complete the rows: expected value of every node given the observed ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        completed : ndarray of shape (n_samples, n_nodes)
            Observed entries as they are, expectations elsewhere: of the values, not
            of their scores.
        """
        X = self._check(X)
        missing = np.isnan(X)
        if self.n_latents == 0 and not missing.any():
            return np.array(X, dtype=float)
        mean, _, variance = self._infer(to_scores(self.margins, X)[0])
        completed = expected_values(self.margins, mean, variance, missing)
        # What was observed stays as it is, to the last bit.
        completed[:, : self.n_features][~missing] = X[~missing]
        return completed

    def posterior(self, X: ArrayLike) -> NDArray[np.float64]:
        """Expected values of the latents given the observed values of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        mean : ndarray of shape (n_samples, n_latents)
            Exact for linear links with additive noise, else by mean field.
        """
        return self.expectation(X)[:, self.n_features :]

    @within_range
    def leave_one_out(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict each feature from the other observed values of its row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        predicted : ndarray of shape (n_samples, n_features)
            Expected values; a missing value is predicted from all observed ones.
        """
        Z = to_scores(self.margins, self._check(X))[0]
        if self.is_jointly_gaussian:
            moments = leave_one_out(self._joint(), Z)
        else:
            values, variance = Z, np.zeros_like(Z)
            if self.n_latents or np.isnan(Z).any():
                values, _, variance = infer(self, Z)
            moments = integrate_features(self, Z, values, variance)
        return expected_values(self.margins, *moments, np.ones(Z.shape, dtype=bool))

    @within_range
    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw rows, parents before children.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : array-like of shape (n_samples, n_features)
            Features.
        Z : ndarray of shape (n_samples, n_latents)
            Latents.
        """
        n_samples = check_count("n_samples", n_samples, high=MOST_ROWS)
        rng = check_random_state(random_state)
        values = np.zeros((n_samples, self.n_nodes))
        for node in self.topological_order.tolist():
            nodes = np.array([node])
            parents = np.flatnonzero(self.adjacency[:, node])
            eta = values[:, parents] @ self.weights[np.ix_(parents, nodes)]
            noise = self._noise if len(parents) else self._noise.root
            values[:, nodes] = noise.draw(
                self._family_means(eta, nodes), self.noise_variance[node], rng
            )
        X = to_values(self.margins, values[:, : self.n_features])
        return X, values[:, self.n_features :]

    def to_networkx(
        self, latent_names: Any = None, feature_names: Any = None
    ) -> nx.DiGraph:
        """Export as a graph.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes; None stands for those in ``node_names``.

        Returns
        -------
        graph : networkx.DiGraph
            Nodes with ``kind`` ("feature" or "latent"), ``intercept`` and
            ``noise_variance``; edges with ``weight`` and ``strength``.
        """
        return to_networkx(self, self._names(latent_names, feature_names))

    def to_pgmpy(self, latent_names: Any = None, feature_names: Any = None) -> Any:
        """Export to pgmpy.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes; None stands for those in ``node_names``.

        Returns
        -------
        model : pgmpy.models.LinearGaussianBayesianNetwork
            For linear links with additive noise only: pgmpy has no others.
        """
        return to_pgmpy(self, self._names(latent_names, feature_names))

    def _names(self, latent_names, feature_names) -> list:
        """Names of all nodes, features first."""
        n = self.n_features
        features = self.node_names[:n] if feature_names is None else feature_names
        latents = self.node_names[n:] if latent_names is None else latent_names
        latents, features = node_names(latents, self.n_latents, features, n)
        return [*features, *latents]


def check_size(X) -> None:
    """Refuse values whose squares overflow."""
    size = np.nanmax(np.abs(X), initial=0.0)
    if size > LARGEST:
        raise ValueError(
            f"X must hold values up to {LARGEST:g} in size, whose squares can be "
            f"summed, got {size:g}."
        )


def _own(name, values, dtype: type = np.float64) -> np.ndarray:
    """Numbers as an array that nobody can change: equal networks stay equal."""
    array = check_numbers(name, values, dtype=dtype).copy()
    array.flags.writeable = False
    return array
