"""Densities of the nodes of a network given their parents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._links import Linear, Link
from ._noise import Additive, Noise


class Densities:
    """The part of a model object that inference works with."""

    adjacency: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    noise_variance: np.ndarray
    link_parameters: np.ndarray | None
    n_latents: int
    topological_order: np.ndarray
    _link: Link
    _noise: Noise

    @property
    def n_nodes(self) -> int:
        """Number of features and latents."""
        return len(self.intercept)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_nodes - self.n_latents

    @property
    def is_jointly_gaussian(self) -> bool:
        """Whether all nodes together have a multivariate normal distribution."""
        return isinstance(self._link, Linear) and isinstance(self._noise, Additive)

    def conditional_means(self, values: ArrayLike) -> NDArray[np.float64]:
        """Mean of each node given the values of its parents.

        Parameters
        ----------
        values : array-like of shape (..., n_nodes)
            Values of all nodes, features first.

        Returns
        -------
        means : ndarray of shape (..., n_nodes)
            Their means.
        """
        eta = np.asarray(values) @ self.weights
        return self._family_means(eta, np.arange(self.n_nodes))

    def _family_means(self, eta, nodes) -> np.ndarray:
        """Means of some nodes from the weighted sums `eta` of their parents.

        eta (..., n_chosen), nodes (n_chosen,) -> means (..., n_chosen).
        """
        if isinstance(self._link, Linear) or self.link_parameters is None:
            return eta + self.intercept[nodes]
        has_parents = self.adjacency[:, nodes].any(axis=0)
        values = self._link.value(eta, self.link_parameters[nodes])
        return np.where(has_parents, values, self.intercept[nodes])

    def _by_noise(self, what, means, nodes) -> np.ndarray:
        """What the noise of some nodes says, by whether they have parents."""
        alone = what(self._noise.root, means)
        if self._noise.root is self._noise:
            return alone
        noisy = what(self._noise, self._noise.clip(means))
        return np.where(self.adjacency[:, nodes].any(axis=0), noisy, alone)

    def _log_densities(self, values, means, nodes) -> np.ndarray:
        """Log-densities of some nodes around their means; last axes as `nodes`."""
        variance = self.noise_variance[nodes]
        return self._by_noise(
            lambda noise, g: noise.log_density(values, g, variance), means, nodes
        )

    def _spread(self, means) -> np.ndarray:
        """Standard deviations of all nodes around their means."""
        spread = np.sqrt(self.noise_variance)
        if not self._noise.positive:
            return spread
        return np.where(self.adjacency.any(axis=0), spread * np.abs(means), spread)

    def _family_log_likelihoods(self, values) -> np.ndarray:
        """Log-density of each node given its parents; the sum is that of the row."""
        means = self.conditional_means(values)
        return self._log_densities(values, means, np.arange(self.n_nodes))
