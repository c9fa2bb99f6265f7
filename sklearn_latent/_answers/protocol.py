"""What the model objects of all families share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from .._core.persistence import Persistent
from ..export import edges_to_frame, to_dot, to_mermaid

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


class Network(Persistent):
    """Base class of model objects.

    A subclass provides ``sample``, ``log_likelihood``, ``posterior``, ``to_networkx``,
    ``to_pgmpy`` and ``n_parameters``, and lists the arguments of its constructor in
    ``_fields``; plain dictionaries, JSON and ``==`` follow from these.
    """

    if TYPE_CHECKING:

        def to_networkx(
            self, latent_names: Any = None, feature_names: Any = None
        ) -> nx.DiGraph: ...

    def to_frame(
        self,
        latent_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Export as a table of edges.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes. If None, they are latent0, ... and x0, ...

        Returns
        -------
        frame : pandas.DataFrame
            One row per edge.
        """
        return edges_to_frame(self.to_networkx(latent_names, feature_names))

    def to_dot(
        self,
        latent_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        min_strength: Literal["auto"] | float = "auto",
        focus: Any = None,
    ) -> str:
        """Export in the DOT language, for Graphviz.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes. If None, they are latent0, ... and x0, ...
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
        latent_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        min_strength: Literal["auto"] | float = "auto",
        focus: Any = None,
    ) -> str:
        """Export as a Mermaid flowchart.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes. If None, they are latent0, ... and x0, ...
        min_strength : "auto" or float, default="auto"
            Edges below this strength are left out; "auto" keeps as many as `plot` of
            the estimators draws.
        focus : str, list of str or None, default=None
            Names of nodes. Only these are kept, with their neighbours.

        Returns
        -------
        text : str
            The diagram; see `sklearn_latent.export.to_mermaid`.
        """
        graph = self.to_networkx(latent_names, feature_names)
        return to_mermaid(graph, min_strength=min_strength, focus=focus)
