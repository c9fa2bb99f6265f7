"""Display of the graph of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from .._core.validation import check_flag
from ._display import Display, check_plot
from ._drawing import draw_graph
from ._selection import select

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection


class LatentGraphDisplay(Display):
    """Picture of a network of latents and features.

    Names stand in boxes, those of latents are filled. Latents above features, and a
    class above the latents of a noisy-or network with its number of classes, make two
    or three layers; of temporal models there are two slices, or one if slices are
    independent; other networks have layers from causes to effects. Layers are rows or,
    where names need the space, columns. Numbers behind latents are priors; the strength
    of edges from a class is the largest difference between two classes. Features that
    a noisy-or network reads as their opposite are dashed and labelled "not ...".
    Stronger edges are wider and darker; where weights have a sign, blue is positive and
    orange negative. Nodes are ordered to reduce edge crossings. Weak edges are left out
    of large graphs; names are shortened, or counted where space is scarce.

    Parameters
    ----------
    graph : networkx.DiGraph
        Graph with the node attribute ``kind`` ("latent", "feature" or, above the
        latents of a noisy-or network, "class"), as returned by
        ``to_networkx``. Nodes of temporal models also have ``slice`` (0 or 1).

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure of these axes.
    positions_ : dict
        Coordinates ``(x, y)`` by node that is shown.
    edges_ : matplotlib LineCollection
        The edges.
    note_ : str
        What the picture says about what is not shown; empty if all is shown.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> from sklearn_latent.plotting import LatentGraphDisplay
    >>> network = make_noisy_or(n_samples=1, random_state=0).network
    >>> display = LatentGraphDisplay(network.to_networkx()).plot()
    >>> len(display.positions_)
    7
    """

    positions_: dict[Any, tuple[float, float]]
    edges_: LineCollection
    note_: str

    def __init__(self, graph: nx.DiGraph) -> None:
        self.graph = graph

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with the method ``to_networkx``.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : LatentGraphDisplay
            The drawn display.
        """
        cls._check(ax, estimator, "to_networkx")
        graph = estimator.to_networkx()
        _add_depths(graph, getattr(estimator, "depth_", None))
        return cls(graph).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        min_strength: Literal["auto"] | float = "auto",
        focus: Any = None,
        color_by: str | None = None,
        legend: bool = True,
    ) -> Self:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        min_strength : "auto" or float, default="auto"
            Edges below this strength, in absolute value, are not drawn; 0.0 draws all
            of them. "auto" draws the strongest edges up to a budget of 120, and at
            least the two strongest of each latent if there are up to 60 latents; of two
            slices, up to 80 features. Features that lose all their edges are left out
            if there are more than 40 features. The picture says what is not shown.
        focus : str, list of str or None, default=None
            Names of latents or features. Only these are drawn, with their parents,
            their children and, in noisy-or networks, the other parents of the children
            of a latent.
        color_by : str or None, default=None
            Numeric edge attribute that determines the colours, for example "depth" of
            noisy-or networks or "support" of temporal models. If None, edges are
            coloured by latent, by sign or by kind, depending on the graph.
        legend : bool, default=True
            Whether to add a legend of edge widths and colours.

        Returns
        -------
        self : LatentGraphDisplay
            With the drawing in ``ax_`` and ``figure_``.
        """
        check_plot("LatentGraphDisplay", ax)
        check_flag("legend", legend)
        selection = select(self.graph, min_strength, focus)
        self.note_ = selection.note
        self.ax_, self.positions_, self.edges_ = draw_graph(
            selection.graph, ax, self.note_, legend, color_by
        )
        self.figure_ = self.ax_.figure
        return self


def _add_depths(graph, depth) -> None:
    """Add the depth at which it was learned to each edge of a noisy-or network."""
    if depth is None or graph.graph.get("family") != "noisy-or":
        return
    kinds = list(graph.nodes(data="kind"))
    row, column = (
        {node: i for i, node in enumerate(node for node, k in kinds if k == kind)}
        for kind in ("latent", "feature")
    )
    for parent, child, data in graph.edges(data=True):
        if parent in row:
            place = (row[parent], column[child])[: depth.ndim]
            data.setdefault("depth", float(depth[place]))
