"""Exact moments of quartet-learnable networks in, structure and parameters out."""

import numpy as np
from exact_moments import ExactMoments
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.noisy_or import quartet_depth
from sklearn_latent.noisy_or._quartets import Thresholds, discover


def chained_network(seed, n_rounds, n_others, n_extra, highest_prior=0.5):
    """A chain in which each latent shares two of the four features of the next.

    The next one cannot be discovered before. Other latents and edges are random.
    """
    rng = np.random.default_rng(seed)
    n_latents = 1 + n_rounds + n_others
    structure = np.kron(np.eye(n_latents), np.ones(4)).astype(bool)
    for latent in range(n_rounds):
        structure[latent, 4 * latent + 4 : 4 * latent + 6] = True
    for _ in range(n_extra):
        structure[rng.integers(n_latents), rng.integers(4 * n_latents)] = True
    columns = rng.permutation(structure.shape[1])
    structure = structure[rng.permutation(n_latents)][:, columns]
    return NoisyOrNetwork(
        rng.uniform(0.1, highest_prior, n_latents),
        np.where(structure, rng.uniform(0.1, 0.7, structure.shape), 1.0),
        rng.uniform(0.0, 0.1, structure.shape[1]),
    )


networks = st.builds(
    chained_network,
    seed=st.integers(0, 2**32 - 1),
    n_rounds=st.integers(0, 2),
    n_others=st.integers(0, 2),
    n_extra=st.integers(0, 6),
)


def in_true_order(network, found):
    """The discovery with its latents in the order of the network."""
    assert len(found.depth) == network.n_latents
    distance = np.abs(network.failure[:, None] - found.network.failure).sum(axis=2)
    return found.keep(linear_sum_assignment(distance)[1])


def assert_recovered(network, found, atol):
    found = in_true_order(network, found)
    np.testing.assert_array_equal(found.network.failure < 1.0, network.structure)
    np.testing.assert_allclose(found.network.prior, network.prior, atol=atol)
    np.testing.assert_allclose(found.network.failure, network.failure, atol=atol)
    return found


@settings(max_examples=60, deadline=None)
@given(network=networks)
def test_exact_moments_give_back_the_network(network):
    depth = quartet_depth(network.structure)
    assume(np.isfinite(depth).all())
    source = ExactMoments(network)
    found = assert_recovered(network, discover(source, Thresholds()), atol=1e-5)
    np.testing.assert_array_equal(found.depth, depth)
    np.testing.assert_allclose(found.network.leak, network.leak, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    network=networks,
    thresholds=st.sampled_from(
        [
            Thresholds(test="coherence", quartet=1e-7, coherence=1e-7),
            Thresholds(quartet=1e-7, extend=1e-6),
        ]
    ),
)
def test_other_thresholds_find_the_same(network, thresholds):
    assume(np.isfinite(quartet_depth(network.structure)).all())
    assert_recovered(network, discover(ExactMoments(network), thresholds), atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_rounds=st.integers(0, 2))
# Here some pairs of the quartet need the larger root of EXTEND, others the smaller.
@example(seed=9712, n_rounds=1)
def test_priors_above_one_half(seed, n_rounds):
    network = chained_network(seed, n_rounds, 1, 0, highest_prior=0.8)
    assert_recovered(network, discover(ExactMoments(network), Thresholds()), atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(network=networks, max_depth=st.integers(0, 1))
def test_max_depth_stops_the_rounds(network, max_depth):
    depth = quartet_depth(network.structure)
    assume(np.isfinite(depth).all())
    found = discover(ExactMoments(network), Thresholds(), max_depth)
    assert len(found.network.prior) == (depth <= max_depth).sum()


@settings(max_examples=10, deadline=None)
@given(network=networks, seed=st.integers(0, 2**32 - 1))
def test_permuting_features_permutes_the_latents(network, seed):
    assume(np.isfinite(quartet_depth(network.structure)).all())
    order = np.random.default_rng(seed).permutation(network.n_features)
    permuted = NoisyOrNetwork(
        network.prior, network.failure[:, order], network.leak[order]
    )
    found = discover(ExactMoments(permuted), Thresholds())
    assert_recovered(permuted, found, atol=1e-5)
