"""Networks made of others, with other edges, nodes or units; units of their columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.graphs import topological_order
from ._densities import Densities
from ._links import Linear
from ._margin_kinds import NormalMargin
from ._noise import Additive
from ._rows import distinct_rows
from ._statistics import GaussianStatistics, canonical_order
from ._table_margins import Margins

_LINEAR, _ADDITIVE = Linear(), Additive()


class Editable(Densities):
    """The part of a model object that makes others, as searches do by the thousand."""

    class_weight: NDArray[np.float64]
    classes: tuple
    margins: Margins
    _parameters: tuple[np.ndarray, ...]
    _with: Any

    @cached_property
    def topological_order(self) -> np.ndarray:  # type: ignore[override]
        """Nodes, parents before children."""
        return topological_order(self.adjacency)

    @classmethod
    def _linear(
        cls,
        adjacency,
        weights,
        intercept,
        noise_variance,
        n_latents: int = 0,
        class_weight=None,
    ) -> Self:
        """A linear network without names, for the time of a search: nothing is checked.

        With `class_weight` all parameters have one more axis, the first.
        """
        network = cls.__new__(cls)
        own = weights, intercept, noise_variance
        plain: dict[str, Any] = {"adjacency": adjacency, "n_latents": n_latents}
        plain |= {"link": "linear", "_link": _LINEAR, "link_parameters": None}
        plain |= {"noise": "additive", "_noise": _ADDITIVE, "margins": None}
        plain |= {"background": None, "node_names": None, "_parameters": own}
        plain |= {"class_weight": np.ones(1), "classes": ()}
        network.__dict__.update(plain)
        if class_weight is not None:
            each = zip(*own, strict=True)
            network.classes = tuple(cls._linear(adjacency, *part) for part in each)
            network.class_weight = class_weight
        network.weights, network.intercept, network.noise_variance = (
            own
            if class_weight is None
            else (np.tensordot(class_weight, part, 1) for part in own)
        )
        return network

    def _rebuilt(self, adjacency, weights, intercept, noise_variance, n_latents):
        """As `_linear`, of the same classes."""
        weight = self.class_weight if self.classes else None
        return self._linear(
            adjacency, weights, intercept, noise_variance, n_latents, weight
        )

    def _with_edges(self, adjacency) -> Self:
        """Other edges: new ones have weight zero, those that go become noise.

        But no more noise than a standardised feature has variance.
        """
        gone = self.adjacency & ~adjacency
        extra = np.where(gone, self.weights**2, 0.0).sum(axis=0)
        n = self.n_features
        noise = self.noise_variance.copy()
        most = np.maximum(noise[:n], 1.0)
        noise[:n] = np.minimum(noise[:n] + extra[:n], most)
        weights = np.where(adjacency, self.weights, 0.0)
        return self._linear(adjacency, weights, self.intercept, noise, self.n_latents)

    def _without(self, latents) -> Self:
        """The network without some latents, of which each child keeps its variance."""
        nodes = self.n_features + np.asarray(latents, dtype=int)
        adjacency = self.adjacency.copy()
        adjacency[nodes] = False
        rest = self._with_edges(adjacency)
        kept = np.delete(np.arange(len(adjacency)), nodes)
        both = np.ix_(kept, kept)
        return self._linear(
            adjacency[both],
            rest.weights[both],
            rest.intercept[kept],
            rest.noise_variance[kept],
            self.n_latents - len(nodes),
        )

    def _with_latents(self, children, weights, noise) -> Self:
        """The network with more latents, over some nodes; not yet fitted.

        weights: of the latents in each child, 0 without an edge, (n_new, n_children)
        noise: what they leave of the variance of each child, (n_children,)
        """
        n_new = len(weights)
        grown = np.pad(self.weights, (0, n_new))
        grown[-n_new:, children] = weights
        adjacency = np.pad(self.adjacency, (0, n_new))
        adjacency[-n_new:] = grown[-n_new:] != 0
        left = np.append(self.noise_variance, np.ones(n_new))
        left[children] = noise
        intercept = np.pad(self.intercept, (0, n_new))
        n_latents = self.n_latents + n_new
        network = self._linear(adjacency, grown, intercept, left, n_latents)
        return network._in_noise_units()

    def _in_noise_units(self) -> Self:
        """The noise of latents has the variance 1, which fixes their scale."""
        scale = np.ones(len(self.weights))
        scale[self.n_features :] /= np.sqrt(self.noise_variance[self.n_features :])
        return self._rescaled(scale)

    def _rescaled(self, scale, shift=0.0) -> Self:
        """The same network of nodes that are multiplied, and then shifted."""
        weights, intercept, noise = self._parameters
        weights = weights * scale / scale[:, None]
        shift = shift * np.ones(len(scale))
        intercept = intercept * scale + shift - shift @ weights
        return self._rebuilt(
            self.adjacency, weights, intercept, noise * scale**2, self.n_latents
        )

    def _reordered(self, place) -> Self:
        """The same network, its nodes in another order."""
        weights, intercept, noise = self._parameters
        return self._rebuilt(
            self.adjacency[np.ix_(place, place)],
            weights[..., place, :][..., place],
            intercept[..., place],
            noise[..., place],
            self.n_latents,
        )

    def _over(self, features, names) -> Self:
        """The network over all features, with names; those that it lacks stay alone.

        features: numbers of its features
        """
        taken, all_names = set(names), list(names)
        for number in range(self.n_latents):
            name = f"latent{number}"
            while name in taken:
                name += "_"
            taken.add(name)
            all_names.append(name)
        n = len(all_names)
        places = np.append(features, len(names) + np.arange(self.n_latents)).astype(int)
        both = np.ix_(places, places)
        adjacency = np.zeros((n, n), dtype=bool)
        adjacency[both] = self.adjacency
        weights, intercept, noise = self._parameters
        grown = np.zeros((*weights.shape[:-2], n, n))
        grown[..., places[:, None], places] = weights
        means, noises = np.zeros(grown.shape[:-1]), np.ones(grown.shape[:-1])
        means[..., places], noises[..., places] = intercept, noise
        theta, margins = self.link_parameters, None
        if theta is not None:
            theta = np.zeros((n, theta.shape[1]))
            theta[places] = self.link_parameters
        if self.margins is not None:
            each = dict(zip(np.asarray(features).tolist(), self.margins, strict=True))
            margins = [each.get(j, NormalMargin()) for j in range(len(names))]
        return self._with(
            adjacency=adjacency,
            weights=grown,
            intercept=means,
            noise_variance=noises,
            link_parameters=theta,
            node_names=all_names,
            margins=margins,
        )

    def _among(self, seen) -> Self:
        """The network of some features, where others have no edges; no latents."""
        places = np.flatnonzero(seen)
        both = np.ix_(places, places)
        margins = self.margins and [self.margins[place] for place in places]
        own = self.intercept[places], self.noise_variance[places]
        changed = {"intercept": own[0], "noise_variance": own[1], "margins": margins}
        return self._with(
            adjacency=self.adjacency[both],
            weights=self.weights[both],
            node_names=None,
            **changed,
        )

    def _canonical(self) -> Self:
        """Latents in order of what they explain, signs by the majority of it.

        Order and signs are arbitrary in the model; fixed, results can be compared.
        """
        n = self.n_features
        effect = self.weights[n:] / np.sqrt(self.noise_variance)
        order = np.argsort(-(effect**2).sum(axis=1), kind="stable")
        sign = np.where(effect.sum(axis=1) < 0, -1.0, 1.0)
        flipped = self._rescaled(np.append(np.ones(n), sign))
        return flipped._reordered(np.append(np.arange(n), n + order))


@dataclass(frozen=True, eq=False)
class Units:
    """Columns in standard units, in an order that depends on their values alone.

    Then neither the order that columns came in nor their units matter.

    order: numbers of the columns in that order
    centre, scale: units of the columns, (n_features,)
    """

    order: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, X, weights=None) -> Units:
        """Units of the columns of rows, in which NaN is missing."""
        X, weights = distinct_rows(X, weights)
        seen = ~np.isnan(X)
        share = weights[:, None] * seen
        share /= np.maximum(share.sum(axis=0), 1e-300)
        # Seen from one of the values, columns that are far from zero keep digits.
        origin = np.nan_to_num(np.fmin.reduce(X))
        near = np.where(seen, X - origin, 0.0)
        mean = (share * near).sum(axis=0)
        scale = np.sqrt((share * (near - mean) ** 2).sum(axis=0))
        scale[~(scale > 0.0)] = 1.0
        filled = np.where(seen, (near - mean) / scale, 0.0)
        order = canonical_order(GaussianStatistics.of(filled, weights))
        return cls(order, origin + mean, scale)

    def scores(self, X) -> np.ndarray:
        """Rows in these units, columns in order."""
        return ((X - self.centre) / self.scale)[:, self.order]

    def network(self, network):
        """Network of the columns from that of their scores; latents come last."""
        latents = np.arange(network.n_latents)
        place = np.append(np.argsort(self.order), len(self.order) + latents)
        scale = np.append(self.scale, np.ones(len(latents)))
        shift = np.append(self.centre, np.zeros(len(latents)))
        return network._reordered(place)._rescaled(scale, shift)
