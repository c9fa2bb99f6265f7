"""EM on tied chains: laws and comparisons."""

import numpy as np
import pytest
from dbn_strategies import (
    assert_same,
    dbns,
    mixed_dbns,
    one_latent,
    random_dbn,
    seeds,
    sequences,
)
from hypothesis import given, settings

from sklearn_latent._core.climb import PATIENCE
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.mixed import TemporalGraph
from sklearn_latent.mixed._em.chain_em import EMOptions, fit_chain
from sklearn_latent.mixed._graph import complete_graph
from sklearn_latent.mixed._panels.panel import Panel
from sklearn_latent.mixed._sem_rounds import _random_network

few = settings(max_examples=25, deadline=None)


def fit_like(model, codes, sample_weight=None, initial=None, report=None, **options):
    return fit_chain(
        Panel.of(codes, model.n_categories, sample_weight),
        model.graph,
        model.cardinality,
        initial,
        EMOptions(**{"max_iter": 20, **options}),
        random_state=0,
        report=report,
    )


def never_falls(objectives):
    return (np.diff(objectives) > -1e-8 * np.abs(objectives[:-1]) - 1e-9).all()


def panel_of(network, values):
    """A panel of values drawn from a network."""
    numeric = network.n_categories == 0
    codes = np.where(numeric, values > 0, values).astype(int)
    kinds = tuple((emission.kind,) for emission in network.emissions)
    numbers = np.where(numeric, values, np.nan) if numeric.any() else None
    widths = np.where(numeric, 2, network.n_categories)
    return Panel(codes, np.ones(len(codes)), widths, kinds, numbers)


@few
@given(dbns(max_observed=5), seeds)
@pytest.mark.parametrize("options", [{}, {"smoothing": 0.0}, {"tied": True}], ids=str)
def test_the_log_posterior_never_falls(options, model, seed):
    codes = sequences(model, 30, 4, seed, missing=0.1)
    ascent = fit_like(model, codes, tol=0.0, **options)
    network, value = ascent.state, ascent.statistics.log_likelihood
    assert never_falls(ascent.objectives)
    np.testing.assert_allclose(network.log_likelihood(codes).sum(), value, atol=1e-9)
    if "smoothing" in options:
        assert ascent.objective == value
    if "tied" in options:
        for j in np.flatnonzero(~model.graph.inter.any(axis=0)):
            np.testing.assert_array_equal(network.start[j], network.transition[j])


@few
@given(mixed_dbns(), seeds)
def test_it_never_falls_with_emissions_of_any_kind(model, seed):
    values, _ = model.sample(30, 3, random_state=seed % 2**31)
    panel, cards = panel_of(model, values), model.cardinality
    kinds = [emission.kind for emission in model.emissions]
    first = random_dbn(model.graph, cards, panel.n_categories, seed, kinds=kinds)
    objectives = []
    fit_chain(
        panel,
        model.graph,
        cards,
        first,
        EMOptions(max_iter=15, tol=0.0),
        report=lambda n, value: objectives.append(value),
    )
    assert never_falls(objectives)


@few
@given(dbns(), seeds)
def test_weight_two_is_a_sequence_twice(model, seed):
    codes = sequences(model, 12, 3, seed)
    weights = np.random.default_rng(seed).integers(1, 4, 12)
    a = fit_like(model, codes, sample_weight=weights.astype(float))
    b = fit_like(model, np.repeat(codes, weights, axis=0))
    np.testing.assert_allclose(a.objectives, b.objectives, atol=1e-9)
    assert_same(a.state.emission, b.state.emission)


@few
@given(dbns(), seeds)
def test_order_of_sequences_does_not_matter(model, seed):
    codes = sequences(model, 15, 3, seed)
    order = np.random.default_rng(seed).permutation(15)
    a, b = fit_like(model, codes).state, fit_like(model, codes[order]).state
    assert_same(a.transition, b.transition, rtol=0)


@few
@given(dbns(), seeds)
def test_merged_sequences_are_all_there(model, seed):
    codes = sequences(model, 40, 2, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 40)
    merged = Panel.of(codes, model.n_categories, weights).merged()
    distinct, mass = merged.codes, merged.weights
    assert len(np.unique(distinct.reshape(len(distinct), -1), axis=0)) == len(distinct)
    np.testing.assert_allclose(mass.sum(), weights.sum())
    np.testing.assert_allclose(
        mass @ model.log_likelihood(distinct), weights @ model.log_likelihood(codes)
    )


def test_ragged_ends_are_no_evidence():
    model = random_dbn(one_latent(2), [2], [3, 3], seed=0)
    codes, _ = model.sample(200, 3, random_state=0)
    padded = np.concatenate([codes, np.full((200, 4, 2), -1)], axis=1)
    a, b = fit_like(model, codes, max_iter=50), fit_like(model, padded, max_iter=50)
    np.testing.assert_allclose(a.objectives, b.objectives)
    np.testing.assert_allclose(a.state.transition[0], b.state.transition[0])


def test_parameters_come_back():
    data = make_latent_dbn("G3", n_sequences=5000, n_slices=5, random_state=0)
    true = data.network
    ascent = fit_like(true, data.codes, max_iter=200)
    found = ascent.state
    assert ascent.converged
    value = ascent.statistics.log_likelihood
    assert value >= true.log_likelihood(data.codes).sum()
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
    first = fit_like(data.network, data.codes, max_iter=500, tol=1e-7)
    again = fit_like(data.network, data.codes, initial=first.state, tol=1e-7)
    # A step of the accelerated ascent is two plain ones and a leap.
    assert again.n_iter <= 3 * PATIENCE
    np.testing.assert_allclose(again.objective, first.objective, rtol=1e-6)
    np.testing.assert_allclose(again.state.start[0], first.state.start[0], atol=1e-3)
    # Emission tables alone give the other tables a start.
    emission = first.state.emission
    other = fit_like(data.network, data.codes, initial=emission, max_iter=500, tol=1e-7)
    np.testing.assert_allclose(other.objective, first.objective, rtol=1e-4)


def test_tables_of_a_richer_graph_fit_at_least_as_well():
    data = make_latent_dbn("G3", n_sequences=1000, random_state=1)
    graph = data.graph
    options = EMOptions(smoothing=0.0, tol=1e-6, max_iter=300)
    panel, cards = Panel.of(data.codes, [4] * 6), data.network.cardinality
    a = fit_chain(panel, graph, cards, options=options, random_state=0)
    complete = complete_graph(graph.structure)
    b = fit_chain(panel, complete, cards, options=options, random_state=0)
    assert b.objective >= a.objective - 1.0
    # The family of the last latent is all latents of both slices.
    counts = b.statistics
    assert counts.transition[-1].shape == (4, 4, 4, 4)
    np.testing.assert_allclose(counts.transition[-1].sum(), 1000 * 3)
    np.testing.assert_allclose(counts.start[-1].sum(), 1000)


def test_a_plateau_is_not_the_end():
    # EM from this start gains less than the tolerance in steps 34 to 83 of 118, and
    # then four nats per sequence.
    rng = np.random.RandomState(16)
    graph = ["G1", "G2", "G3"][rng.randint(3)]
    true = make_latent_dbn(graph, 1, 1, random_state=16).network
    codes, _ = true.sample(2000, 4, random_state=16)
    start = _random_network(
        true.graph, true.cardinality, true.n_categories, np.random.RandomState(1016)
    )
    ascent = fit_like(true, codes, initial=start, max_iter=200)
    gains = np.diff(ascent.objectives) / len(codes)
    early = np.flatnonzero(gains <= 1e-4)[0] + 1
    assert ascent.converged
    assert ascent.objective - ascent.objectives[early] > 1.5 * len(codes)


def test_poor_data_gives_a_usable_model():
    graph = TemporalGraph([[1, 1, 0]], [[0]], [[1]])
    codes = np.full((1, 2, 3), -1)  # nothing at all is known
    ascent = fit_chain(Panel.of(codes, [1, 2, 3]), graph, [3], random_state=0)
    model = ascent.state
    assert np.isfinite(ascent.objective)
    assert all(np.isfinite(table).all() for table in model.emission)
    np.testing.assert_allclose(model.log_likelihood(codes), 0.0, atol=1e-9)


def test_stops_when_asked_to():
    data = make_latent_dbn("G1", n_sequences=100, random_state=0)
    ascent = fit_like(data.network, data.codes, report=lambda n, value: n == 2, tol=0.0)
    assert ascent.n_iter == 2 and ascent.stopped


@pytest.mark.parametrize("seed", range(3))
def test_factored_em_climbs_its_bound(seed):
    data = make_latent_dbn("G3", n_sequences=300, n_slices=4, random_state=seed)
    ascent = fit_like(data.network, data.codes, max_joint_states=8)
    assert (np.diff(ascent.objectives) > -1e-3).all()
    assert not ascent.state.is_exact()
    with pytest.warns(ApproximateInferenceWarning, match="max_joint_states=8"):
        ascent.state.log_likelihood(data.codes[:1])
    exact = fit_like(data.network, data.codes)
    per_sequence = (exact.objective - ascent.objective) / 300
    assert -1e-6 < per_sequence < 0.5
