"""Maximum-likelihood parameters of many families, for any link and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._graphs import parents_of
from .fitter import Family, FamilyFitter
from .links import get_link
from .noise import get_noise


@dataclass(frozen=True, eq=False)
class FittedFamilies:
    """Parameters of families, in the units of the data.

    families: the families
    weights: scales of the parents, in their order; 0 where a family has fewer,
        (n_families, n_parents)
    theta: offset, scale and bias of the link. Without parents the offset is the mean
        and the scale 0, (n_families, 3)
    noise_variance: variance of the noise. Without parents the variance of the child: a
        constant mean makes all noise models the same, (n_families,)
    log_likelihood: of the child given its parents, over all rows, (n_families,)
    """

    families: Sequence[Family]
    weights: np.ndarray
    theta: np.ndarray
    noise_variance: np.ndarray
    log_likelihood: np.ndarray

    def means(self, X, link) -> np.ndarray:
        """Mean of each family's child, of shape (n_families, n_samples)."""
        X = np.asarray(X, dtype=float)
        rows = [
            X[:, list(parents)] @ weight[: len(parents)]
            for (_, parents), weight in zip(self.families, self.weights, strict=True)
        ]
        eta = np.reshape(rows, (len(self.families), len(X)))
        values = get_link(link).value(eta, self.theta[:, None])
        return np.where(self.theta[:, 1:2] == 0, self.theta[:, :1], values)


def fit_families(
    X,
    families: Sequence[Family],
    *,
    link="sigmoid",
    noise="additive",
    sample_weight=None,
    tol=1e-6,
    max_iter=100,
) -> FittedFamilies:
    """Fit the parameters of families."""
    link, noise = get_link(link), get_noise(noise)
    fitter = FamilyFitter(X, link, noise, sample_weight, tol=tol, max_iter=max_iter)
    children, parents = fitter.pad(families)
    *fitted, log_likelihood = fitter.fit(children, parents)
    weights, theta, variance = fitter.to_units(children, parents, *fitted)
    return FittedFamilies(families, weights, theta, variance, log_likelihood)


def fit_network(X, adjacency, **options):
    """Fit all families of a graph.

    X (n_samples, n_nodes), adjacency (n_nodes, n_nodes) -> weights (n_nodes, n_nodes),
    theta (n_nodes, 3), noise_variance (n_nodes,), log_likelihood (n_nodes,).
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    families = [(x, parents_of(adjacency, x)) for x in range(len(adjacency))]
    fit = fit_families(X, families, **options)
    weights = np.zeros(adjacency.shape)
    for (child, parents), row in zip(families, fit.weights, strict=True):
        weights[list(parents), child] = row[: len(parents)]
    return weights, fit.theta, fit.noise_variance, fit.log_likelihood
