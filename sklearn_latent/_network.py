"""What the model objects of all families share."""

from __future__ import annotations

from ._persistence import Persistent
from .export import edges_to_frame

__all__ = ["Network"]


class Network(Persistent):
    """Base class of model objects.

    A subclass provides ``sample``, ``log_likelihood``, ``posterior``, ``to_networkx``,
    ``to_pgmpy`` and ``n_parameters``, and lists the arguments of its constructor in
    ``_fields``; plain dictionaries, JSON and ``==`` follow from these.
    """

    def to_frame(self, latent_names=None, feature_names=None):
        """Export as a table of edges.

        Parameters
        ----------
        latent_names, feature_names : array-like of str or None, default=None
            Names of the nodes; None: latent0, latent1, ... and x0, x1, ...

        Returns
        -------
        frame : pandas.DataFrame
            One row per edge.
        """
        return edges_to_frame(self.to_networkx(latent_names, feature_names))
