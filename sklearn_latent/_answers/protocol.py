"""What fitted models of all families share: names, graphs and plain forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .._core.persistence import Persistent
from ..export import edges_to_frame, node_names, to_dot, to_mermaid

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


class Exported:
    """Base class of what has a graph: estimators and networks.

    A subclass provides `_names`, unique names of latents and features where None stands
    for default ones, and with these `_graph` and `_pgmpy`.
    """

    if TYPE_CHECKING:

        def _names(
            self, latent_names: Any, feature_names: Any
        ) -> tuple[list, list]: ...

        def _graph(self, latents: list, features: list) -> GraphParts: ...

        def _pgmpy(self, latents: list, features: list) -> Any: ...

    def to_networkx(
        self, latent_names: Any = None, feature_names: Any = None
    ) -> nx.DiGraph:
        """Export as a graph.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes. If None, they are those of the data, or latent0, ... and
            x0, ...

        Returns
        -------
        graph : networkx.DiGraph
            Nodes have a ``kind``, "latent" or "feature", and edges a ``strength``
            between 0 and 1; parameters are attributes of both. Of noisy-or networks:
            ``prior``, ``leak``, ``failure``, and a ``polarity`` of -1 of features that
            are read as their opposite. Of Gaussian ones: ``intercept``,
            ``noise_variance``, ``weight``. Of these two, classes of rows are one more
            node of the kind "class", and attributes such as ``weight0`` are those of a
            class. Of latents behind columns of any kind: two consecutive slices whose
            nodes are (name, slice), or one of plain names if there is no time; edges
            have a ``kind``: "measurement" from a latent to a feature, "intra" within a
            slice, "inter" into the next slice.
        """
        names = self._names(latent_names, feature_names)
        return self._graph(*names).write()

    def to_pgmpy(self, latent_names: Any = None, feature_names: Any = None) -> Any:
        """Export to pgmpy.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes, as for `to_networkx`.

        Returns
        -------
        model : pgmpy model
            `DiscreteBayesianNetwork` of a noisy-or network,
            `LinearGaussianBayesianNetwork` of a Gaussian one with linear links,
            additive noise and one class, `DynamicBayesianNetwork` of two slices of
            latents behind columns of any kind.
        """
        return self._pgmpy(*self._names(latent_names, feature_names))

    def to_frame(
        self, latent_names: Any = None, feature_names: Any = None
    ) -> pd.DataFrame:
        """Export as a table of edges.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes, as for `to_networkx`.

        Returns
        -------
        frame : pandas.DataFrame
            One row per edge: parent, child and the parameters of the edge.
        """
        return edges_to_frame(self.to_networkx(latent_names, feature_names))

    def to_dot(
        self,
        latent_names: Any = None,
        feature_names: Any = None,
        *,
        min_strength: Literal["auto"] | float = "auto",
        focus: Any = None,
    ) -> str:
        """Export in the DOT language, for Graphviz.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes, as for `to_networkx`.
        min_strength : "auto" or float, default="auto"
            Edges below this strength are left out; "auto" keeps as many as `plot` of
            the estimators draws.
        focus : str, list of str or None, default=None
            Names of nodes. Only these are kept, with their neighbours.

        Returns
        -------
        text : str
            The diagram; see `sklearn_latent.export.to_dot`.
        """
        graph = self.to_networkx(latent_names, feature_names)
        return to_dot(graph, min_strength=min_strength, focus=focus)

    def to_mermaid(
        self,
        latent_names: Any = None,
        feature_names: Any = None,
        *,
        min_strength: Literal["auto"] | float = "auto",
        focus: Any = None,
    ) -> str:
        """Export as a Mermaid flowchart.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes, as for `to_networkx`.
        min_strength : "auto" or float, default="auto"
            As in `to_dot`.
        focus : str, list of str or None, default=None
            As in `to_dot`.

        Returns
        -------
        text : str
            The diagram; see `sklearn_latent.export.to_mermaid`.
        """
        graph = self.to_networkx(latent_names, feature_names)
        return to_mermaid(graph, min_strength=min_strength, focus=focus)


class GraphParts(NamedTuple):
    """Nodes and edges of a model, with their attributes.

    columns: attributes of edges that a table always has
    classes: weights of classes of rows, and strengths of their edges to nodes, by name
    """

    family: str
    columns: str
    nodes: Iterable[tuple[Any, dict]]
    edges: Iterable[tuple[Any, Any, dict]]
    classes: tuple[np.ndarray, dict] | None = None
    note: str = ""

    def write(self) -> nx.DiGraph:
        """The graph; attributes are plain numbers, as GraphML needs them."""
        import networkx as nx

        graph = nx.DiGraph(family=self.family, edge_attributes=self.columns)
        if self.note:
            graph.graph["note"] = self.note
        nodes = list(self.nodes)
        if self.classes is not None:
            weights, strengths = self.classes
            top = class_name([name for name, _ in nodes])
            own = {f"weight{c}": w for c, w in enumerate(weights.tolist())}
            graph.add_node(top, kind="class", n_classes=len(weights), **own)
        graph.add_nodes_from(nodes)
        graph.add_edges_from(self.edges)
        if self.classes is not None:
            for name, strength in strengths.items():
                graph.add_edge(top, name, strength=float(strength))
        return graph


def class_name(taken: Sequence) -> str:
    """Name of the node of the class, unless another node has it."""
    name = "class"
    while name in taken:
        name += "_"
    return name


def by_class(name: str, values: Iterable) -> dict[str, Any]:
    """A number of each class, as attributes."""
    return {f"{name}{c}": float(value) for c, value in enumerate(values)}


def tabular_cpd(node: Any, table: Any, parents: Sequence) -> Any:
    """A table of pgmpy with one axis for each parent, then one for the node."""
    from pgmpy.factors.discrete import TabularCPD

    *widths, n_values = np.shape(table)
    columns = np.reshape(table, (-1, n_values)).T
    evidence = (list(parents), widths) if parents else ()
    return TabularCPD(node, n_values, columns, *evidence)


class Network(Exported, Persistent):
    """Base class of model objects.

    A subclass provides ``sample``, ``log_likelihood``, ``posterior`` and
    ``n_parameters``, for exports ``_graph``, ``_pgmpy`` and ``_sizes``, and lists the
    arguments of its constructor in ``_fields``; plain dictionaries, JSON and ``==``
    follow from these.
    """

    if TYPE_CHECKING:

        @property
        def _sizes(self) -> tuple[int, int]: ...

    def _names(self, latent_names: Any, feature_names: Any) -> tuple[list, list]:
        """Names of latents and features, unique in the whole graph."""
        n_latents, n_features = self._sizes
        return node_names(latent_names, n_latents, feature_names, n_features)
