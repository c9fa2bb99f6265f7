"""Inference on joint chains against plain enumeration and a textbook HMM."""

import numpy as np
import pytest
from dbn_strategies import (
    assert_same,
    assert_same_counts,
    brute_force,
    changing_dbns,
    dbns,
    mixed_dbns,
    one_latent,
    random_dbn,
    seeds,
    sequences,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.mixed import LatentDBN, TemporalGraph
from sklearn_latent.mixed._inference import chain as chain_module
from sklearn_latent.mixed._inference import expectation as expectation_module
from sklearn_latent.mixed._inference import factored as factored_module
from sklearn_latent.mixed._inference import tree as tree_module
from sklearn_latent.mixed._inference.chain_data import ChainData
from sklearn_latent.mixed._inference.expectation import expectation
from sklearn_latent.mixed._tables import joint_table

few = settings(max_examples=40, deadline=None)
approximate = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.ApproximateInferenceWarning"
)
all_networks = {
    "categories": dbns(),
    "zeros": dbns(zeros=True),
    "all kinds": mixed_dbns(),
    "epochs": changing_dbns(),
}


@few
@given(st.data(), st.integers(1, 3), seeds)
@pytest.mark.parametrize("kind", all_networks)
def test_inference_equals_enumeration(kind, data, n_slices, seed):
    network = data.draw(all_networks[kind])
    values = sequences(network, 3, max(n_slices, network.n_epochs), seed)
    log_likelihood, posterior = (
        network.log_likelihood(values),
        network.posterior(values),
    )
    states, best = network.viterbi(values, return_log_probability=True)
    for i, sequence in enumerate(values):
        paths, probability = brute_force(network, sequence)
        total = probability.sum()
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(log_likelihood[i], np.log(total), atol=1e-9)
            np.testing.assert_allclose(best[i], np.log(probability.max()), atol=1e-9)
        chosen = (paths == states[i]).all(axis=(1, 2))
        np.testing.assert_allclose(probability[chosen], probability.max(), rtol=1e-9)
        if not total:
            continue
        for j, card in enumerate(network.cardinality):
            for t in range(len(sequence)):
                share = np.bincount(paths[:, t, j], probability, minlength=card)
                np.testing.assert_allclose(posterior[j][i, t], share / total, atol=1e-9)


@few
@given(dbns(), seeds)
def test_predictions_of_gaps_equal_enumeration(network, seed):
    codes = sequences(network, 2, 2, seed)
    predictive = network.predictive(codes)
    filled = network.impute(codes)
    np.testing.assert_array_equal(filled[codes >= 0], codes[codes >= 0])
    for i, t, f in np.argwhere(codes < 0):
        # P(x = v | rest) is the share of P(rest, x = v).
        chance = np.empty(network.n_categories[f])
        for v in range(len(chance)):
            sequence = codes[i].copy()
            sequence[t, f] = v
            chance[v] = brute_force(network, sequence)[1].sum()
        chance /= chance.sum()
        np.testing.assert_allclose(predictive[f][i, t], chance, atol=1e-10)
        np.testing.assert_allclose(chance[filled[i, t, f]], chance.max(), atol=1e-9)


@few
@given(mixed_dbns(), seeds)
def test_expected_counts_add_up(network, seed):
    values = sequences(network, 5, 3, seed)
    whole = network.expected_counts(values)
    parts = network.expected_counts(values[:2]) + network.expected_counts(values[2:])
    twice = network.expected_counts(values, [2, 1, 1, 1, 1])
    again = network.expected_counts(np.concatenate([values[:1], values]))
    for one, two in [(whole, parts), (twice, again)]:
        assert np.isclose(one.log_likelihood, two.log_likelihood)
        assert_same_counts(one, two, atol=1e-9)


@few
@given(dbns(), st.integers(2, 3), seeds)
def test_expected_counts_are_the_same_in_logarithms(network, n_slices, seed):
    codes = sequences(network, 5, n_slices, seed)
    plain = network.expected_counts(codes)
    with pytest.MonkeyPatch.context() as patch:
        for module in (chain_module, tree_module):
            patch.setattr(module, "UNDERFLOW", 2.0)
        careful = network.expected_counts(codes)
    assert np.isclose(plain.log_likelihood, careful.log_likelihood)
    assert_same_counts(plain, careful, atol=1e-10)


@few
@given(dbns() | mixed_dbns(most_far=0.0), st.integers(1, 3), seeds)
def test_expected_counts_equal_enumeration(network, n_slices, seed):
    values = sequences(network, 3, n_slices, seed).astype(float)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(values))
    counts = network.expected_counts(values, weights)
    graph = network.directed_graph
    start = [np.zeros(table.shape) for table in network.start]
    transition = [np.zeros(table.shape) for table in network.transition]
    emission = [np.zeros_like(one.natural) for one in network.emissions]
    numeric = np.array([one.is_numeric for one in network.emissions])
    values[(values < 0) & ~numeric] = np.nan
    for weight, sequence in zip(weights, values, strict=True):
        paths, probability = brute_force(network, sequence)
        probability *= weight / probability.sum()
        # Slices behind the last known value are no evidence.
        known = np.flatnonzero(~np.isnan(sequence).all(axis=1))
        for t in range(known.max(initial=-1) + 1):
            state = paths[:, t].T
            for j in range(network.n_latents):
                index = [*(state[i] for i in graph.parents_within(j)), state[j]]
                if t:
                    before = [paths[:, t - 1, i] for i in graph.parents_before(j)]
                    np.add.at(transition[j], tuple(before + index), probability)
                else:
                    np.add.at(start[j], tuple(index), probability)
            before = sequence[t - 1] if t else np.full_like(sequence[0], np.nan)
            for f, one in enumerate(network.emissions):
                row = one.design(sequence[t, [f]], before[[f]])
                parent = network._parents[f]
                own = state[parent] if parent >= 0 else np.zeros(len(paths), int)
                mass = np.bincount(own, probability, minlength=len(emission[f]))
                emission[f] += mass[:, None] * row
    assert_same(counts.start, start, atol=1e-9)
    assert_same(counts.transition, transition, atol=1e-9)
    assert_same(counts.emission, emission, atol=1e-9)


def textbook_hmm(start, transition, emission, sequence):
    """Log-likelihood and states by unscaled recursions, one sequence at a time."""
    likelihood = np.array(
        [
            np.prod(
                [table[:, x] for table, x in zip(emission, row, strict=True)], axis=0
            )
            for row in sequence
        ]
    )
    alpha, beta = np.empty_like(likelihood), np.ones_like(likelihood)
    alpha[0] = start * likelihood[0]
    for t in range(1, len(sequence)):
        alpha[t] = (alpha[t - 1] @ transition) * likelihood[t]
    for t in range(len(sequence) - 2, -1, -1):
        beta[t] = transition @ (likelihood[t + 1] * beta[t + 1])
    total = alpha[-1].sum()
    return np.log(total), alpha * beta / total


def test_chain_with_one_latent_is_a_hidden_markov_model():
    graph = one_latent(3)
    network = random_dbn(graph, [4], [3, 4, 2], seed=0)
    codes, _ = network.sample(30, 20, random_state=1)
    log_likelihood, posterior = network.log_likelihood(codes), network.posterior(codes)
    for i, sequence in enumerate(codes):
        expected, states = textbook_hmm(
            network.start[0], network.transition[0], network.emission, sequence
        )
        np.testing.assert_allclose(log_likelihood[i], expected, atol=1e-10)
        np.testing.assert_allclose(posterior[0][i], states, atol=1e-10)


def test_parts_without_edges_between_them_run_apart():
    measurement = np.kron(np.eye(3), np.ones((1, 2)))
    graph = TemporalGraph(measurement, np.zeros((3, 3)), np.eye(3))
    whole = random_dbn(graph, [2, 3, 2], [2, 3] * 3, seed=2)
    codes = sequences(whole, 20, 4, seed=3)
    total = np.zeros(20)
    for j in range(3):
        part = LatentDBN(
            one_latent(2),
            [whole.cardinality[j]],
            [whole.start[j]],
            [whole.transition[j]],
            whole.emission[2 * j : 2 * j + 2],
        )
        alone = codes[:, :, 2 * j : 2 * j + 2]
        total += part.log_likelihood(alone)
        np.testing.assert_allclose(
            part.posterior(alone)[0], whole.posterior(codes)[j], atol=1e-12
        )
    np.testing.assert_allclose(whole.log_likelihood(codes), total)
    # One part of twelve states is more than the limit, parts of three are not.
    whole.max_joint_states = 3
    np.testing.assert_allclose(whole.log_likelihood(codes), total)


def test_latents_in_a_row_are_a_chain():
    """Thirty latents of one slice, each the parent of the next: a path is a tree."""
    n = 30
    chain = random_dbn(one_latent(1), [3], [4], seed=8)
    start, step = chain.start[0], chain.transition[0]
    tables = [start, *[step] * (n - 1)]
    graph = TemporalGraph(np.eye(n), np.eye(n, k=1), np.zeros((n, n)))
    row = LatentDBN(graph, [3] * n, tables, tables, chain.emission * n)
    codes = sequences(chain, 20, n, seed=9)
    turned = codes.swapaxes(1, 2)
    np.testing.assert_allclose(
        row.log_likelihood(turned), chain.log_likelihood(codes), atol=1e-10
    )
    posterior = np.concatenate(row.posterior(turned), axis=1)
    np.testing.assert_allclose(posterior, chain.posterior(codes)[0], atol=1e-10)
    best, value = row.viterbi(turned, return_log_probability=True)
    path, expected = chain.viterbi(codes, return_log_probability=True)
    np.testing.assert_allclose(value, expected, atol=1e-10)
    np.testing.assert_array_equal(best.swapaxes(1, 2), path)


def test_forests_of_many_joint_states_are_exact():
    """Nine latents and six edges: 41,472 joint states, none of them enumerated."""
    cards = [2, 2, 3, 4, 3, 4, 3, 4, 6]
    edges = [(0, 2), (1, 2), (2, 3), (4, 5), (5, 6), (5, 7)]
    intra = np.zeros((9, 9))
    intra[tuple(zip(*edges, strict=True))] = 1
    graph = TemporalGraph(np.eye(9), intra, np.zeros((9, 9)))
    network = random_dbn(graph, cards, [3] * 9, seed=3)
    assert network.is_exact()
    codes = sequences(network, 4, 1, seed=4, missing=0.2)
    counts = [np.zeros(table.shape) for table in network.start]
    for i, row in enumerate(codes[:, 0]):
        joint = joint_table(network.graph, network.start, range(9), later=False)
        for j, code in enumerate(row):
            if code >= 0:
                likelihood = network.emission[j][:, code]
                joint = joint * likelihood.reshape([-1, *[1] * (8 - j)])
        assert np.isclose(network.log_likelihood(codes)[i], np.log(joint.sum()))
        best = network.viterbi(codes)[i, 0]
        np.testing.assert_allclose(joint[tuple(best)], joint.max())
        joint = joint / joint.sum()
        for j, state in enumerate(network.posterior(codes)):
            others = tuple(k for k in range(9) if k != j)
            np.testing.assert_allclose(state[i, 0], joint.sum(axis=others), atol=1e-10)
            family = (*graph.parents_within(j), j)
            rest = tuple(k for k in range(9) if k not in family)
            counts[j] += joint.sum(axis=rest) * (row >= 0).any()
    assert_same(network.expected_counts(codes).start, counts, atol=1e-10)


def test_ragged_end_is_a_shorter_sequence():
    graph = one_latent(2)
    network = random_dbn(graph, [3], [3, 3], seed=4)
    codes, _ = network.sample(10, 6, random_state=5)
    padded = codes.copy()
    padded[:, 4:] = -1
    short = codes[:, :4]
    np.testing.assert_allclose(
        network.log_likelihood(padded), network.log_likelihood(short)
    )
    np.testing.assert_allclose(
        network.posterior(padded)[0][:, :4], network.posterior(short)[0]
    )
    assert_same_counts(network.expected_counts(padded), network.expected_counts(short))


def test_nothing_underflows():
    # Each slice favours the wrong state by a factor of 10^600.
    n_features = 200
    graph = one_latent(n_features)
    network = LatentDBN(
        graph,
        [2],
        [[1.0, 0.0]],
        [[[1.0, 0.0], [0.0, 1.0]]],
        [[[0.001, 0.999], [0.999, 0.001]]] * n_features,
    )
    codes = np.zeros((2, 3, n_features), dtype=int)
    expected = 3 * n_features * np.log(0.001)
    np.testing.assert_allclose(network.log_likelihood(codes), expected)
    np.testing.assert_allclose(network.posterior(codes)[0][..., 0], 1.0)


def test_blocks_of_sequences_do_not_matter(monkeypatch):
    graph = TemporalGraph(np.eye(2), [[0, 1], [0, 0]], np.eye(2))
    network = random_dbn(graph, [2, 3], [3, 3], seed=6)
    data = ChainData.of(sequences(network, 17, 4, seed=7), graph.structure)
    whole = expectation(network, data)
    path = network.viterbi(data.values)
    monkeypatch.setattr(expectation_module, "CHUNK_ELEMENTS", 100)
    blocks = expectation(network, data)
    np.testing.assert_allclose(whole.log_likelihood, blocks.log_likelihood)
    assert_same(whole.counts.transition, blocks.counts.transition)
    np.testing.assert_array_equal(path, network.viterbi(data.values))


def coupled_network(seed, coupling=1.0):
    """Two latents of which one is a parent of the other."""
    graph = TemporalGraph(
        np.kron(np.eye(2), np.ones((1, 3))), [[0, 1], [0, 0]], np.eye(2)
    )
    network = random_dbn(graph, [3, 3], [3] * 6, seed=seed)
    if coupling < 1:
        table = network.transition[1]
        alone = np.broadcast_to(table.mean(axis=1, keepdims=True), table.shape)
        transition = coupling * table + (1 - coupling) * alone
        start = network.start[1]
        first = coupling * start + (1 - coupling) * start.mean(axis=0)
        return LatentDBN(
            graph,
            [3, 3],
            [network.start[0], first],
            [network.transition[0], transition],
            network.emission,
        )
    return network


def factored(network):
    """The same network with inference that must be factored."""
    return LatentDBN(
        network.graph,
        network.cardinality,
        network.start,
        network.transition,
        network.emission,
        max_joint_states=1,
    )


@approximate
@pytest.mark.parametrize("seed", range(5))
def test_factored_inference_is_a_close_lower_bound(seed):
    network = coupled_network(seed)
    codes = sequences(network, 50, 5, seed=seed, missing=0.1)
    exact, bound = (
        network.log_likelihood(codes),
        factored(network).log_likelihood(codes),
    )
    assert (bound <= exact + 1e-9).all()
    assert (exact - bound).mean() < 1.0
    for a, b in zip(
        network.posterior(codes), factored(network).posterior(codes), strict=True
    ):
        np.testing.assert_allclose(b.sum(axis=2), 1.0)
        assert np.abs(a - b).mean() < 0.1


@approximate
def test_factored_inference_is_exact_without_coupling():
    network = coupled_network(0, coupling=0.0)
    codes = sequences(network, 20, 4, seed=1)
    mean_field = factored(network)
    np.testing.assert_allclose(
        mean_field.log_likelihood(codes), network.log_likelihood(codes), atol=1e-6
    )
    np.testing.assert_array_equal(mean_field.viterbi(codes), network.viterbi(codes))
    exact, counts = network.expected_counts(codes), mean_field.expected_counts(codes)
    assert_same_counts(exact, counts, atol=1e-4)


@approximate
def test_factored_inference_of_a_sequence_does_not_depend_on_the_others():
    network = factored(coupled_network(3))
    codes = sequences(network, 8, 4, seed=2)
    together = network.posterior(codes)
    for i in range(len(codes)):
        for a, b in zip(together, network.posterior(codes[i : i + 1]), strict=True):
            np.testing.assert_allclose(a[i], b[0], atol=1e-12)


@approximate
def test_factored_path_is_scored_by_the_joint_model():
    network = coupled_network(4)
    codes = sequences(network, 6, 3, seed=3)
    states, value = factored(network).viterbi(codes, return_log_probability=True)
    best = network.viterbi(codes, return_log_probability=True)[1]
    assert (value <= best + 1e-9).all()
    for i, sequence in enumerate(codes):
        paths, probability = brute_force(network, sequence)
        chosen = (paths == states[i]).all(axis=(1, 2))
        np.testing.assert_allclose(value[i], np.log(probability[chosen][0]), atol=1e-9)


def test_the_limit_is_named():
    network = factored(coupled_network(0))
    codes = np.zeros((1, 2, 6), dtype=int)
    with pytest.warns(ApproximateInferenceWarning, match="max_joint_states=1"):
        network.log_likelihood(codes)


class TestLongSequences:
    """Products of steps change nothing but the time."""

    def agree(self, network, n_slices, seed=0, n=2):
        """Results with and without products of steps are the same."""
        data = ChainData.of(
            sequences(network, n, n_slices, seed), network.graph.structure
        )
        found = expectation(network, data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain_module, "FEW", 0)
            whole = expectation(network, data)
        np.testing.assert_allclose(
            found.log_likelihood, whole.log_likelihood, rtol=1e-10, atol=1e-10
        )
        assert_same_counts(found.counts, whole.counts, rtol=1e-10, atol=1e-10)
        assert_same(found.states, whole.states, atol=1e-10)

    @given(dbns(zeros=True), st.integers(90, 200), seeds)
    @settings(max_examples=25, deadline=None)
    def test_products_do_not_matter(self, network, n_slices, seed):
        self.agree(network, n_slices, seed)

    def test_states_that_never_change(self):
        graph = one_latent(1)
        emission = [[[0.6, 0.4], [0.4, 0.6]]]
        self.agree(LatentDBN(graph, [2], [[0.5, 0.5]], [np.eye(2)], emission), 600)

    def test_underflow(self):
        """Every tenth slice favours the wrong state by a factor of 10^600."""
        graph = one_latent(200)
        network = LatentDBN(
            graph,
            [2],
            [[1.0, 0.0]],
            [[[1.0, 0.0], [0.5, 0.5]]],
            [[[0.001, 0.999], [0.999, 0.001]]] * 200,
        )
        codes = np.ones((2, 60, 200), dtype=int)
        codes[0, ::10] = 0
        found = expectation(network, ChainData.of(codes, graph.structure))
        np.testing.assert_allclose(found.states[0][..., 0], 1.0)
        expected = 200 * (6 * np.log(0.001) + 54 * np.log(0.999))
        np.testing.assert_allclose(found.log_likelihood[0], expected)


@pytest.mark.parametrize(("n", "n_slices"), [(1, 1), (1, 2), (3, 70), (2, 101)])
# The widest potentials lose digits in products of steps, which are then not used.
@pytest.mark.parametrize("spread", [1.0, 30.0, 100.0])
def test_chains_of_their_own_potentials_agree_with_single_steps(n, n_slices, spread):
    rng = np.random.RandomState(0)
    node = spread * rng.randn(n, n_slices, 3)
    pair = spread * rng.randn(n, n_slices - 1, 3, 3)
    nodes, pairs = factored_module._smooth(node, pair)
    log_after = np.zeros((n, n_slices, 3))
    log_before = node.copy()
    for t in range(1, n_slices):
        through = log_before[:, t - 1, :, None] + pair[:, t - 1]
        log_before[:, t] += logsumexp(through, axis=1)
    for t in range(n_slices - 2, -1, -1):
        ahead = pair[:, t] + (node + log_after)[:, t + 1, None]
        log_after[:, t] = logsumexp(ahead, axis=2)
    expected = softmax(log_before + log_after, axis=2)
    np.testing.assert_allclose(nodes, expected, atol=1e-9)
    np.testing.assert_allclose(pairs.sum(axis=3), expected[:, :-1], atol=1e-9)
    np.testing.assert_allclose(pairs.sum(axis=2), expected[:, 1:], atol=1e-9)
