"""The graph of a fitted model, drawn in the way that suits its kind."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_choice, check_flag, shown
from ._bipartite import draw_bipartite
from ._dag import draw_dag
from ._ink import check_axes, check_matplotlib
from ._tint import Tints
from ._two_slices import draw_two_slices

__all__ = ["LatentGraphDisplay"]


class LatentGraphDisplay:
    """Picture of a network of latents and features.

    Models of two layers show latents on top, with their priors, and features below.
    Other networks stand in layers from causes to effects, hidden nodes filled. Models
    over time show two slices side by side, or one if none depends on the one before.
    The wider and darker an edge, the stronger; where weights have a sign, blue is
    positive and orange negative; other colours can be asked for. Nodes are ordered such
    that few edges cross. Names are turned, thinned or left out as space gets scarce.

    Parameters
    ----------
    graph : networkx.DiGraph
        Graph with the node attribute ``kind`` ("latent" or "feature"), as the
        estimators' ``to_networkx`` returns it. Nodes of models over time have
        ``slice`` (0 or 1) as well.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.

    figure_ : matplotlib Figure
        Figure of these axes.

    positions_ : dict
        Coordinates ``(x, y)`` by node.

    edges_ : matplotlib LineCollection
        The edges.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> from sklearn_latent.plotting import LatentGraphDisplay
    >>> network = make_noisy_or(n_samples=1, random_state=0).network
    >>> display = LatentGraphDisplay.from_network(network)
    >>> len(display.positions_)
    7
    """

    def __init__(self, graph):
        self.graph = graph

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Draw a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with a method ``to_networkx``.

        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Passed on to `plot`.

        Returns
        -------
        display : LatentGraphDisplay
            The drawn display.
        """
        if not hasattr(estimator, "to_networkx"):
            raise TypeError(
                "estimator must have a method to_networkx, got an instance of "
                f"{type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        graph = estimator.to_networkx()
        _add_depths(graph, getattr(estimator, "depth_", None))
        return cls(graph).plot(ax=ax, **kwargs)

    @classmethod
    def from_network(
        cls, network, *, latent_names=None, feature_names=None, ax=None, **kwargs
    ):
        """Draw a model object.

        Parameters
        ----------
        network : NoisyOrNetwork, GaussianNetwork or LatentDBN
            The network.

        latent_names, feature_names : sequence of str or None, default=None
            Names of the nodes; None stands for latent0, ... and x0, ...

        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Passed on to `plot`.

        Returns
        -------
        display : LatentGraphDisplay
            The drawn display.
        """
        if not hasattr(network, "to_networkx"):
            raise TypeError(f"network must be a model object, got {shown(network)}.")
        graph = network.to_networkx(latent_names, feature_names)
        return cls(graph).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax=None,
        *,
        min_strength=0.0,
        feature_labels="auto",
        color_by=None,
        legend=True,
    ):
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        min_strength : float, default=0.0
            Edges below this strength are left out of the picture.

        feature_labels : {"auto", True, False}, default="auto"
            Whether to write the names of features. "auto" writes as many as fit.

        color_by : str or None, default=None
            Numeric attribute of edges that gives their colours, for example "depth" of
            noisy-or networks or "support" of models over time. None: by latent, by sign
            or by kind of edge, as suits the graph.

        legend : bool, default=True
            Whether to explain widths and colours of edges.

        Returns
        -------
        self : LatentGraphDisplay
            With the drawing in ``ax_`` and ``figure_``.
        """
        check_matplotlib("LatentGraphDisplay")
        check_axes("ax", ax)
        check_flag("legend", legend)
        if isinstance(feature_labels, str):
            check_choice("feature_labels", feature_labels, ("auto",))
        else:
            check_flag("feature_labels", feature_labels)
        if not isinstance(min_strength, Real) or np.isnan(float(min_strength)):
            raise ValueError(
                f"min_strength must be a number, got {shown(min_strength)}."
            )
        self._check_graph()
        tints = None if color_by is None else Tints(self.graph, color_by)
        draw = _drawing_of(self.graph)
        self.ax_, self.positions_, self.edges_ = draw(
            self.graph,
            ax,
            min_strength=min_strength,
            feature_labels=feature_labels,
            legend=legend,
            tints=tints,
        )
        self.figure_ = self.ax_.figure
        return self

    def _check_graph(self) -> None:
        """Refuse what is no graph, or has edges whose strength is no number."""
        import networkx as nx

        if not isinstance(self.graph, nx.DiGraph) or self.graph.is_multigraph():
            raise TypeError(
                f"graph must be a networkx.DiGraph, got {shown(self.graph)}."
            )
        slices = dict(self.graph.nodes(data="slice"))
        timed = [isinstance(t, Integral) and int(t) in (0, 1) for t in slices.values()]
        if not all(timed) and any(place is not None for place in slices.values()):
            raise ValueError(
                "graph must have a slice of 0 or 1 for every node, or for none, got "
                f"{shown(slices)}."
            )
        for parent, child, strength in self.graph.edges(data="strength", default=1.0):
            if not isinstance(strength, Real) or not np.isfinite(float(strength)):
                raise ValueError(
                    "graph must have edges whose strength is a finite number, got "
                    f"{shown(strength)} from {parent!r} to {child!r}."
                )


def _add_depths(graph, depth) -> None:
    """Note on the edges of a noisy-or network when each was learned."""
    if depth is None or graph.graph.get("family") != "noisy-or":
        return
    kinds = graph.nodes(data="kind")
    latents, features = (
        {node: i for i, node in enumerate(n for n, kind in kinds if kind == wanted)}
        for wanted in ("latent", "feature")
    )
    for parent, child, data in graph.edges(data=True):
        row = latents[parent]
        value = depth[row] if depth.ndim == 1 else depth[row, features[child]]
        data.setdefault("depth", float(value))


def _drawing_of(graph):
    """The kind of picture that suits a graph."""
    if any(place is not None for _, place in graph.nodes(data="slice")):
        return draw_two_slices
    if graph.graph.get("family") == "noisy-or":
        return draw_bipartite
    kind = dict(graph.nodes(data="kind"))
    has_two_layers = graph.number_of_edges() > 0 and all(
        kind[parent] == "latent" and kind[child] != "latent"
        for parent, child in graph.edges
    )
    return draw_bipartite if has_two_layers else draw_dag
