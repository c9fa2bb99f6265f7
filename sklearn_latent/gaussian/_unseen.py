"""Features without any value: left out of learning, put back into the network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ._network import GaussianNetwork
from ._options import SearchOptions

__all__ = ["extend_network", "restrict_options"]


def restrict_options(options: SearchOptions, seen) -> SearchOptions:
    """Options of a search over the features that have values.

    seen (n_features,).
    """
    if seen.all():
        return options
    both = np.ix_(seen, seen)
    return replace(
        options,
        forbidden=options.forbidden[both],
        required=options.required[both],
        initial=None if options.initial is None else options.initial[both],
    )


def extend_network(network: GaussianNetwork, seen, names) -> GaussianNetwork:
    """Network over all features, with names.

    seen (n_features,).
    """
    taken = set(names)
    all_names = list(names)
    for number in range(network.n_latents):
        name = f"latent{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        all_names.append(name)
    places = np.concatenate(
        [np.flatnonzero(seen), len(seen) + np.arange(network.n_latents)]
    ).astype(int)
    n_nodes = len(all_names)
    both = np.ix_(places, places)
    adjacency = np.zeros((n_nodes, n_nodes), dtype=bool)
    weights = np.zeros((n_nodes, n_nodes))
    intercept, noise_variance = np.zeros(n_nodes), np.ones(n_nodes)
    adjacency[both], weights[both] = network.adjacency, network.weights
    intercept[places] = network.intercept
    noise_variance[places] = network.noise_variance
    theta = None
    if network.link_parameters is not None:
        theta = np.zeros((n_nodes, network.link_parameters.shape[1]))
        theta[places] = network.link_parameters
    return GaussianNetwork(
        adjacency,
        weights,
        intercept,
        noise_variance,
        link=network.link,
        noise=network.noise,
        link_parameters=theta,
        n_latents=network.n_latents,
        node_names=all_names,
    )
