"""The model object: a Gaussian network, its sampling and its likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._answers.protocol import GraphParts, Network
from .._core.graphs import topological_order
from .._core.persistence import Array, Choice, Integer, Model, Names
from .._core.validation import (
    MOST_ROWS,
    check_count,
    check_distinct,
    check_names,
    check_numbers,
    check_random_state,
)
from ._atom_margins import ConstantMargin
from ._background import Background
from ._editing import Editable
from ._gaussian_graph import graph_of, pgmpy_of
from ._links import Linear, Link, get_link
from ._margin_kinds import Margin
from ._network_checks import check_class_weight, check_network, within_range
from ._noise import KNOWN, Additive, Noise, get_noise
from ._row_inference import RowInference
from ._table_margins import (
    MarginsField,
    atom_columns,
    check_margins,
    estimated,
    to_values,
)

if TYPE_CHECKING:
    pass


class GaussianNetwork(RowInference, Editable, Network):
    """A directed network of continuous variables with Gaussian noise.

    Nodes are the features, then the latents. The mean of a node is a link
    function of the weighted sum of its parents. With margins, the nodes are normal
    scores of the features; rows, and their densities, are always those of the features.

    Rows may belong to hidden classes: networks of the same graph, each with its own
    weights, intercepts and noise variances.

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
        With `class_weight` these three have one more axis, the first, for the classes.
    link : str or Link, default="linear"
        Link function of all nodes that have parents.
    noise : str or Noise, default="additive"
        "additive", or "multiplicative": of nodes that have parents; others have
        additive noise.
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
    class_weight : array-like of shape (n_classes,) or None, default=None
        P(class), positive; for linear links with additive noise. None: one class.
    background : Background or None, default=None
        A share of the rows that do not follow the network: part of densities and
        samples, while expected values are those of the network.

    Attributes
    ----------
    adjacency, link, noise, link_parameters, n_latents, node_names, margins, background
        As given.
    weights, intercept, noise_variance : ndarray
        As given; of classes their means, weighted by `class_weight`.
    class_weight : ndarray of shape (n_classes,)
        P(class).
    classes : tuple of GaussianNetwork
        The network of scores of each class; empty if there is one class only.
    n_nodes, n_features, n_classes : int
        Numbers of nodes, features and classes.

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

    Two classes of rows, in which the effect has opposite signs:

    >>> network = GaussianNetwork(
    ...     weights != 0, [weights, -weights], [[1.0, 0.0]] * 2, [[1.0, 0.5]] * 2,
    ...     class_weight=[0.5, 0.5],
    ... )
    >>> network.class_posterior([[1.0, 2.0], [0.0, 0.0]]).round(3)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    _fields: ClassVar = {
        "adjacency": Array("bool", 2),
        "weights": Array(),
        "intercept": Array(),
        "noise_variance": Array(),
        "link": Choice(("linear", "sigmoid")),
        "noise": Choice(("additive", "multiplicative")),
        "link_parameters": Array(ndim=2, optional=True),
        "n_latents": Integer(),
        "node_names": Names(),
        "margins": MarginsField(),
        "class_weight": Array(ndim=1, optional=True, omitted=True),
        "background": Model(Background, omitted=True),
    }

    classes: tuple[GaussianNetwork, ...]

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
        class_weight: ArrayLike | None = None,
        background: Background | None = None,
    ) -> None:
        self.adjacency = _own("adjacency", adjacency, bool)
        self._parameters = (
            _own("weights", weights),
            _own("intercept", intercept),
            _own("noise_variance", noise_variance),
        )
        self.class_weight = _own(
            "class_weight", check_class_weight(class_weight, self._parameters)
        )
        self.weights, self.intercept, self.noise_variance = (
            self._parameters
            if class_weight is None
            else (
                _own("", np.tensordot(self.class_weight, p, 1))
                for p in self._parameters
            )
        )
        self.link = link
        self.link_parameters = None
        if link_parameters is not None:
            self.link_parameters = _own("link_parameters", link_parameters)
        self._link, self._noise = get_link(link), get_noise(noise)
        self.noise = noise if type(self._noise) not in KNOWN else self._noise.name
        self.n_latents = n_latents
        check_network(self)
        n_nodes = len(self.intercept)
        if node_names is None:
            node_names = [f"x{i}" for i in range(n_nodes - self.n_latents)]
            node_names += [f"latent{i}" for i in range(self.n_latents)]
        self.node_names = check_names("node_names", node_names, n_nodes)
        check_distinct("node_names", self.node_names)
        self.topological_order = topological_order(self.adjacency)
        self.margins = check_margins(margins, self.n_features)
        if estimated(self.margins) is not None and self._noise.positive:
            raise ValueError(
                f"margins must be None with noise={noise!r}, which needs positive "
                "values where scores are not, got a list."
            )
        self.background = background
        if background is not None and len(background.center) != self.n_features:
            raise ValueError(
                f"background must have one value per feature, {self.n_features}, got "
                f"{len(background.center)}."
            )
        self.classes = ()
        if class_weight is not None:
            self.classes = self._separate()

    def _separate(self) -> tuple[GaussianNetwork, ...]:
        """Networks of the classes, without margins."""
        if not isinstance(self._link, Linear) or not isinstance(self._noise, Additive):
            raise ValueError(
                "class_weight must be None unless link='linear' and noise='additive', "
                f"got link={self.link!r} and noise={self.noise!r}."
            )
        return tuple(
            GaussianNetwork(
                self.adjacency,
                *own,
                n_latents=self.n_latents,
                node_names=self.node_names,
            )
            for own in zip(*self._parameters, strict=True)
        )

    def _arguments(self) -> dict[str, Any]:
        names = ("weights", "intercept", "noise_variance")
        own: dict[str, Any] = dict(zip(names, self._parameters, strict=True))
        own["class_weight"] = self.class_weight if self.classes else None
        return super()._arguments() | own

    def __repr__(self) -> str:
        return (
            f"GaussianNetwork({self.n_features} features, {self.n_latents} latents, "
            f"{int(self.adjacency.sum())} edges, link={self.link!r}"
            f"{f', {self.n_classes} classes' if self.classes else ''})"
        )

    @property
    def n_parameters(self) -> int:
        """Free parameters: of nodes, margins, classes, and the background's share."""
        means = self._link.n_parameters(self.adjacency.sum(axis=0))
        margins = sum(margin.n_parameters for margin in self.margins or ())
        own = int(np.sum(means)) + self.n_nodes
        # Constant columns have neither location nor scale.
        own -= 2 * sum(isinstance(m, ConstantMargin) for m in self.margins or ())
        own *= self.n_classes
        return own + margins + self.n_classes - 1 + (self.background is not None)

    def with_margins(self, margins: Sequence[Margin] | None) -> GaussianNetwork:
        """The same network of scores, with other margins.

        Parameters
        ----------
        margins : sequence of Margin or None
            One per feature; None stands for scores that are the values.

        Returns
        -------
        network : GaussianNetwork
            A new network, without background, which is one of values.
        """
        return self._with(margins=margins, background=None)

    def _with(self, **changed) -> GaussianNetwork:
        """The same network with other arguments."""
        return GaussianNetwork(**(self._arguments() | changed))

    @within_range
    def joint(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of all nodes; for linear links and additive noise only.

        With margins these are moments of the scores. Of classes, each has its own.

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
                f"noise='additive' and one class, got {self.link!r}, {self.noise!r} "
                f"and {self.n_classes}."
            )
        joint = self._joint()
        return joint.mean, 0.5 * (joint.covariance + joint.covariance.T)

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
        values = self._draw(n_samples, rng, atom_columns(self.margins))
        X = to_values(self.margins, values[:, : self.n_features])
        if self.background is not None:
            X = self.background.scatter(X, self.margins, rng)
        return X, values[:, self.n_features :]

    def _draw(self, n_samples, rng, atoms=()) -> np.ndarray:
        """Scores of rows, (n_samples, n_nodes)."""
        values = np.zeros((n_samples, self.n_nodes))
        if self.classes:
            label = rng.choice(self.n_classes, size=n_samples, p=self.class_weight)
            for number, own in enumerate(self.classes):
                members = label == number
                values[members] = own._draw(int(members.sum()), rng, atoms)
            return values
        for node in self.topological_order.tolist():
            nodes = np.array([node])
            parents = np.flatnonzero(self.adjacency[:, node])
            eta = values[:, parents] @ self.weights[np.ix_(parents, nodes)]
            noise = self._noise if len(parents) else self._noise.root
            values[:, nodes] = noise.draw(
                self._family_means(eta, nodes), self.noise_variance[node], rng
            )
            if node in atoms:
                # Children see the atom.
                values[:, node] = atoms[node].settled(values[:, node])
        return values

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.n_latents, self.n_features

    def _names(self, latent_names, feature_names) -> tuple[list, list]:
        n = self.n_features
        features = self.node_names[:n] if feature_names is None else feature_names
        latents = self.node_names[n:] if latent_names is None else latent_names
        return super()._names(latents, features)

    def _graph(self, latents: list, features: list) -> GraphParts:
        return graph_of(self, latents, features)

    def _pgmpy(self, latents: list, features: list) -> Any:
        return pgmpy_of(self, latents, features)


def _own(name, values, dtype: type = np.float64) -> np.ndarray:
    """Numbers as an array that nobody can change: equal networks stay equal."""
    array = check_numbers(name, values, dtype=dtype).copy()
    array.flags.writeable = False
    return array
