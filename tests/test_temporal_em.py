"""EM on tied chains: laws and comparisons."""

import numpy as np
import pytest
from dbn_strategies import dbns, random_dbn, seeds, sequences
from hypothesis import given, settings

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.temporal import LatentDBN, TemporalGraph
from sklearn_latent.temporal._em.em import fit_chain, merge_sequences
from sklearn_latent.temporal._measurement.cardinality import chain_penalty

few = settings(max_examples=25, deadline=None)


def fit_like(model, codes, **options):
    options = {"random_state": 0, "max_iter": 20, **options}
    return fit_chain(
        codes, model.n_categories, model.graph, model.cardinality, **options
    )


@few
@given(dbns(max_observed=5), seeds)
def test_the_log_posterior_never_falls(model, seed):
    codes = sequences(model, 30, 4, seed, missing=0.1)
    network, result = fit_like(model, codes, tol=0.0)
    steps = np.diff(result.log_posteriors)
    assert (steps > -1e-8 * np.abs(result.log_posteriors[:-1]) - 1e-9).all()
    np.testing.assert_allclose(
        network.log_likelihood(codes).sum(), result.log_likelihood, atol=1e-9
    )


@few
@given(dbns(), seeds)
def test_the_likelihood_never_falls_without_smoothing(model, seed):
    codes = sequences(model, 30, 3, seed)
    _, result = fit_like(model, codes, smoothing=0.0, tol=0.0)
    steps = np.diff(result.log_likelihoods)
    assert (steps > -1e-8 * np.abs(result.log_likelihoods[:-1]) - 1e-9).all()


@few
@given(dbns(), seeds)
def test_tied_tables(model, seed):
    codes = sequences(model, 30, 3, seed)
    network, result = fit_like(model, codes, tol=0.0, tied=True)
    memory = model.graph.inter.any(axis=0)
    for j in np.flatnonzero(~memory):
        np.testing.assert_array_equal(network.start[j], network.transition[j])
    steps = np.diff(result.log_posteriors)
    assert (steps > -1e-8 * np.abs(result.log_posteriors[:-1]) - 1e-9).all()


@few
@given(dbns(), seeds)
def test_weight_two_is_a_sequence_twice(model, seed):
    codes = sequences(model, 12, 3, seed)
    weights = np.random.default_rng(seed).integers(1, 4, 12)
    weighted, a = fit_like(model, codes, sample_weight=weights.astype(float))
    repeated, b = fit_like(model, np.repeat(codes, weights, axis=0))
    np.testing.assert_allclose(a.log_likelihood, b.log_likelihood, atol=1e-9)
    for x, y in zip(weighted.emission, repeated.emission, strict=True):
        np.testing.assert_allclose(x, y)


def test_tables_of_all_slices_cost_as_one():
    graph = TemporalGraph(np.eye(2), [[0, 1], [0, 0]], [[1, 0], [0, 0]])
    network = random_dbn(graph, [3, 2], [3, 3], seed=0)
    codes = np.zeros((50, 4, 2), dtype=int)
    # Start and transition of the first latent, one table of the second, two features.
    n_parameters = np.array([2, 6, 3, 6 + 4])
    n_rows = np.array([50, 150, 200, 200])
    expected = 0.5 * n_parameters @ np.log(n_rows)
    np.testing.assert_allclose(chain_penalty(network, codes, np.ones(50)), expected)


@few
@given(dbns(), seeds)
def test_order_of_sequences_does_not_matter(model, seed):
    codes = sequences(model, 15, 3, seed)
    order = np.random.default_rng(seed).permutation(15)
    a, b = fit_like(model, codes)[0], fit_like(model, codes[order])[0]
    for x, y in zip(a.transition, b.transition, strict=True):
        np.testing.assert_array_equal(x, y)


@few
@given(dbns(), seeds)
def test_merged_sequences_are_all_there(model, seed):
    codes = sequences(model, 40, 2, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 40)
    distinct, mass = merge_sequences(codes, weights)
    assert len(np.unique(distinct.reshape(len(distinct), -1), axis=0)) == len(distinct)
    np.testing.assert_allclose(mass.sum(), weights.sum())
    np.testing.assert_allclose(
        mass @ model.log_likelihood(distinct), weights @ model.log_likelihood(codes)
    )


def test_ragged_ends_are_no_evidence():
    model = random_dbn(TemporalGraph([[1, 1]], [[0]], [[1]]), [2], [3, 3], seed=0)
    codes, _ = model.sample(200, 3, random_state=0)
    padded = np.concatenate([codes, np.full((200, 4, 2), -1)], axis=1)
    a, b = fit_like(model, codes, max_iter=50), fit_like(model, padded, max_iter=50)
    np.testing.assert_allclose(a[1].log_posteriors, b[1].log_posteriors)
    np.testing.assert_allclose(a[0].transition[0], b[0].transition[0])


def test_parameters_come_back():
    data = make_latent_dbn("G3", n_sequences=5000, n_slices=5, random_state=0)
    true = data.network
    found, result = fit_like(true, data.codes, max_iter=200)
    assert result.converged
    assert result.log_likelihood >= true.log_likelihood(data.codes).sum()
    # The names of the states are free: match them by the emission tables.
    order = [found.emission[3 * j].argmax(axis=0) for j in range(2)]
    names = [true.emission[3 * j].argmax(axis=1) for j in range(2)]
    match = [o[n] for o, n in zip(order, names, strict=True)]
    for f in range(6):
        np.testing.assert_allclose(
            found.emission[f][match[f // 3]], true.emission[f], atol=0.03
        )
    np.testing.assert_allclose(
        found.transition[1][np.ix_(match[1], match[0], match[1])],
        true.transition[1],
        atol=0.06,
    )


def test_warm_start_stays_at_the_maximum():
    data = make_latent_dbn("G2", n_sequences=500, random_state=0)
    first, result = fit_like(data.network, data.codes, max_iter=500, tol=1e-7)
    again, repeat = fit_like(data.network, data.codes, initial=first, tol=1e-7)
    assert repeat.n_iter <= 2
    np.testing.assert_allclose(repeat.log_likelihood, result.log_likelihood, rtol=1e-6)
    np.testing.assert_allclose(again.start[0], first.start[0], atol=1e-3)
    # Emission tables alone give the other tables a start.
    _, other = fit_like(
        data.network, data.codes, initial=first.emission, max_iter=500, tol=1e-7
    )
    np.testing.assert_allclose(other.log_likelihood, result.log_likelihood, rtol=1e-4)


def test_tables_of_a_richer_graph_fit_at_least_as_well():
    data = make_latent_dbn("G3", n_sequences=1000, random_state=1)
    graph = data.graph
    complete = TemporalGraph(graph.structure, [[0, 1], [0, 0]], np.ones((2, 2)))
    options = {"random_state": 0, "smoothing": 0.0, "tol": 1e-6, "max_iter": 300}
    cards = data.network.cardinality
    _, a = fit_chain(data.codes, [4] * 6, graph, cards, **options)
    _, b = fit_chain(data.codes, [4] * 6, complete, cards, **options)
    assert b.log_likelihood >= a.log_likelihood - 1.0
    counts = b.counts
    assert counts.joint_pairs[0].shape == (4, 4, 4, 4)
    np.testing.assert_allclose(counts.joint_pairs[0].sum(), 1000 * 3)
    np.testing.assert_allclose(counts.joint_start[0].sum(), 1000)


def test_more_starts_are_never_worse():
    data = make_latent_dbn("G1", n_sequences=100, reliability=0.5, random_state=0)
    one = fit_like(data.network, data.codes)[1]
    many = fit_like(data.network, data.codes, n_init=5)[1]
    assert many.log_posteriors[-1] >= one.log_posteriors[-1] - 1e-9


def test_poor_data_gives_a_usable_model():
    graph = TemporalGraph([[1, 1, 0]], [[0]], [[1]])
    codes = np.full((1, 2, 3), -1)  # nothing at all is known
    model, result = fit_chain(codes, [1, 2, 3], graph, [3], random_state=0)
    assert np.isfinite(result.log_likelihood)
    assert all(np.isfinite(table).all() for table in model.emission)
    np.testing.assert_allclose(model.log_likelihood(codes), 0.0, atol=1e-9)


def test_stops_when_asked_to():
    data = make_latent_dbn("G1", n_sequences=100, random_state=0)
    messages = []

    def progress(message):
        messages.append(message)
        return len(messages) == 2

    _, result = fit_like(data.network, data.codes, progress=progress, tol=0.0)
    assert result.n_iter == len(messages) == 2


@pytest.mark.parametrize("seed", range(3))
def test_factored_em_climbs_its_bound(seed):
    data = make_latent_dbn("G3", n_sequences=300, n_slices=4, random_state=seed)
    with pytest.warns(ApproximateInferenceWarning, match="max_joint_states=8"):
        network, result = fit_like(data.network, data.codes, max_joint_states=8)
    steps = np.diff(result.log_posteriors)
    assert (steps > -1e-3).all()
    assert isinstance(network, LatentDBN)
    exact = fit_like(data.network, data.codes)[1]
    per_sequence = (exact.log_likelihood - result.log_likelihood) / 300
    assert -1e-6 < per_sequence < 0.5
