"""Fitted models as tables of edges and as text, and names of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._core.validation import check_names, shown
from .plotting._diagrams import to_dot, to_mermaid

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["edges_to_frame", "to_dot", "to_mermaid"]


def edges_to_frame(graph: nx.DiGraph) -> pd.DataFrame:
    """Table of the edges of a graph.

    Parameters
    ----------
    graph : networkx.DiGraph
        Graph as returned by ``to_networkx``.

    Returns
    -------
    frame : pandas.DataFrame
        One row per edge, in the order of the graph: ``parent``, ``child``, the
        parent's ``prior`` where nodes have one, then the attributes of the edge.

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_latent.export import edges_to_frame
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("flu", "fever", strength=0.75)
    >>> edges_to_frame(graph)
      parent  child  strength
    0    flu  fever      0.75
    """
    import networkx as nx
    import pandas as pd

    if not isinstance(graph, nx.Graph):
        raise TypeError(f"graph must be a networkx graph, got {shown(graph)}.")
    edges = list(graph.edges(data=True))
    columns: dict[str, list[Any]] = {
        "parent": [parent for parent, _, _ in edges],
        "child": [child for _, child, _ in edges],
    }
    priors = dict(graph.nodes(data="prior"))
    if any(prior is not None for prior in priors.values()):
        columns["prior"] = [priors[parent] for parent, _, _ in edges]
    # A graph without edges still makes a table with the usual columns.
    usual = graph.graph.get("edge_attributes", "").split()
    seen = (name for _, _, attributes in edges for name in attributes)
    for name in dict.fromkeys([*usual, *seen]):
        columns[name] = [attributes.get(name) for _, _, attributes in edges]
    return pd.DataFrame(columns)


def node_names(
    latent_names: Sequence | None,
    n_latents: int,
    feature_names: Sequence | None,
    n_features: int,
) -> tuple[list, list]:
    """Names of all nodes, unique in the whole graph; None gives default names."""
    features = _unique_names("feature_names", feature_names, n_features, "x")
    latents = _unique_names("latent_names", latent_names, n_latents, "latent")
    # The output of another latent model has columns named latent0, latent1, ...
    # Such a table is valid input, so the latents are renamed.
    taken = set(features) | set(latents)
    for i, name in enumerate(latents):
        if name in features:
            while name in taken:
                name = f"{name}_"
            taken.add(name)
            latents[i] = name
    return latents, features


def _unique_names(argument: str, names: Sequence | None, n: int, prefix: str) -> list:
    """Validate names, or make default ones."""
    if names is None:
        return [f"{prefix}{i}" for i in range(n)]
    names = check_names(argument, names, n)
    if len(set(names)) != n:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{argument} must hold no name twice, got {twice!r} twice.")
    return names
