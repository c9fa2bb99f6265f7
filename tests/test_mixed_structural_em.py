"""Structural EM."""

import numpy as np
import pytest
from dbn_strategies import graphs, random_dbn, seeds, sequences
from hypothesis import given, settings
from joblib import parallel_config
from sklearn.base import clone

from sklearn_latent._core.graphs import is_acyclic
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import SEMDBN, TemporalGraph
from sklearn_latent.mixed._inference.expectation import ChainData, expectation
from sklearn_latent.mixed._panels.panel import Panel
from sklearn_latent.mixed._sem_rounds import (
    ExpectedCounts,
    better_structure,
    random_graph,
    review_edges,
)

few = settings(max_examples=20, deadline=None)


@few
@given(seeds)
def test_starts_are_pure_measurement_models(seed):
    rng = np.random.RandomState(seed)
    graph = random_graph(3, 7, 2, rng)
    assert (graph.structure.sum(axis=0) == 1).all()
    assert graph.structure.any(axis=1).all()
    assert is_acyclic(graph.intra)
    assert not random_graph(3, 7, 1, rng).inter.any()
    few_parents = random_graph(6, 7, 2, rng, max_parents=2)
    assert (few_parents.intra.sum(axis=0) + few_parents.inter.sum(axis=0) <= 2).all()


@few
@given(graphs(undirected=False), seeds)
def test_factored_counts_are_those_of_em(graph, seed):
    n = graph.n_latents
    network = random_dbn(graph, [2] * n, [3] * graph.n_observed, seed)
    network.max_joint_states = 1
    codes = sequences(network, 20, 3, seed, missing=0.1)
    counts = ExpectedCounts(network, Panel.of(codes, [3] * graph.n_observed))
    data = ChainData.of(codes, graph.structure)
    expected = expectation(network, data, together=True).counts
    for j in range(n):
        before, within = graph.parents_before(j), graph.parents_within(j)
        np.testing.assert_allclose(
            counts.counts((), within, j, later=False), expected.start[j]
        )
        np.testing.assert_allclose(
            counts.counts(before, within, j, later=True), expected.transition[j]
        )


def total_score(counts, graph):
    parents = graph.structure.argmax(axis=0)
    total = counts.feature_scores()[np.arange(len(parents)), parents].sum()
    for j in range(graph.n_latents):
        parts = graph.parents_before(j), graph.parents_within(j)
        value, n_free = counts.score(*parts, j)
        total += value - counts.price * n_free
    return total


@few
@given(graphs(undirected=False), seeds)
def test_a_better_structure_has_a_better_score(graph, seed):
    # A pure measurement model: each feature has a latent, each latent a feature.
    n = graph.n_latents
    structure = np.concatenate([np.eye(n), np.eye(n)[:1].repeat(2, axis=0)]).T
    graph = TemporalGraph(structure, graph.intra, graph.inter)
    network = random_dbn(graph, [2] * n, [3] * (n + 2), seed)
    codes = sequences(network, 30, 3, seed, missing=0.1)
    counts = ExpectedCounts(network, Panel.of(codes, [3] * (n + 2)))
    end = better_structure(counts, graph)
    none = np.zeros((n, n), dtype=bool)
    empty = TemporalGraph(structure, none, none)
    assert total_score(counts, end) >= total_score(counts, empty) - 1e-6
    assert (end.structure.sum(axis=0) == 1).all()
    assert end.structure.any(axis=1).all()
    assert counts.network(end).graph == end


def test_the_better_of_two_graphs_is_kept():
    data = make_latent_dbn("G3", 500, 4, random_state=0)
    panel = Panel.of(data.codes, [4] * 6)
    tables = data.network.emission
    for intra in (data.graph.intra, data.graph.intra.T):
        graph = TemporalGraph(data.graph.structure, intra, np.zeros((2, 2)))
        assert review_edges(panel, graph, [4, 4], tables) == data.graph
    assert review_edges(panel, data.graph, [4, 4], tables) == data.graph


@pytest.mark.parametrize("name", ["G1", "G2"])
def test_graphs_of_the_paper_come_back(name):
    data = make_latent_dbn(name, n_sequences=1000, n_slices=4, random_state=0)
    n_latents = data.graph.n_latents
    model = SEMDBN(n_latents, 4, 4, random_state=0).fit(data.X)
    assert structural_hamming_distance(data.graph, model.graph_) == (0, 0)
    assert model.bic_ == model.bics_.min()
    np.testing.assert_allclose(model.bic(data.X), model.bic_)
    assert model.transform(data.X).shape == (1000, 4 * 4 * n_latents)
    assert model.predict(data.X).shape == (1000, 4, n_latents)


def test_random_tables_as_a_start():
    data = make_latent_dbn("G1", n_sequences=300, n_slices=3, random_state=0)
    options = {"n_latents": 1, "cardinality": 4, "n_slices": 3, "random_state": 0}
    usual = SEMDBN(init="random", **options).fit(data.X)
    better = SEMDBN(**options).fit(data.X)
    assert usual.bic_ >= better.bic_ - 1.0
    assert usual.graph_ == better.graph_


def test_starts_in_parallel_are_the_same():
    data = make_latent_dbn("G2", n_sequences=100, n_slices=3, random_state=0)
    one = SEMDBN(2, 4, 3, n_init=2, max_rounds=2, random_state=3)
    two = clone(one).set_params(n_jobs=2)
    with parallel_config(backend="threading"):
        two.fit(data.X)
    np.testing.assert_array_equal(one.fit(data.X).bics_, two.bics_)


def test_more_latents_than_features():
    X = np.random.default_rng(0).integers(0, 3, (30, 2))
    with pytest.warns(PoorDataWarning, match="only 2 are used"):
        model = SEMDBN(n_latents=3, random_state=0).fit(X)
    assert model.structure_.shape == (2, 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_latents": 0}, "n_latents must be an integer from 1 to .*, got 0"),
        ({"n_init": 1.5}, "n_init must be an integer from 1 to .*, got 1.5"),
        ({"cardinality": [2, 2]}, "cardinality must be an integer or one per latent"),
        ({"cardinality": 0}, "cardinality must hold whole numbers from 1"),
        ({"n_slices": 4}, "n_slices"),
        ({"init": "warm"}, "init must be one of .*, got 'warm'"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        SEMDBN(**parameters).fit(np.zeros((5, 3)))


def test_too_many_joint_states_are_factored_with_a_warning():
    from sklearn_latent.exceptions import ApproximateInferenceWarning

    data = make_latent_dbn("G3", n_sequences=150, n_slices=3, random_state=0)
    model = SEMDBN(
        2, 4, 3, n_init=1, max_rounds=2, max_iter=10, max_joint_states=8, random_state=0
    )
    with pytest.warns(ApproximateInferenceWarning, match="max_joint_states=8"):
        model.fit(data.X)
    assert np.isfinite(model.bic_)


@pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.ApproximateInferenceWarning"
)
def test_many_latents_start_with_small_tables():
    # Edges between half of the latents would give tables of a million cells.
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(40, 3 * 8))
    model = SEMDBN(8, 4, 3, n_init=1, max_rounds=0, max_iter=3, random_state=0).fit(X)
    assert max(table.size for table in model.transition_) <= 4**3
    assert np.isfinite(model.bic_)


def test_sequences_without_any_value_and_features_with_one():
    data = make_latent_dbn("G1", n_sequences=60, n_slices=3, random_state=0)
    panel = data.codes.astype(float)
    panel[:, :, 2] = 1.0
    known = SEMDBN(1, 2, n_init=1, random_state=0).fit(panel)
    empty = np.concatenate([panel, np.full((2, 3, 3), np.nan)])
    model = SEMDBN(1, 2, n_init=1, random_state=0).fit(empty)
    # They say nothing, so the tables are the same and their likelihood is 1.
    np.testing.assert_allclose(model.emission_[0], known.emission_[0], atol=0.02)
    np.testing.assert_allclose(model.score_samples(empty)[-2:], 0.0, atol=1e-9)
    assert np.isfinite(model.transform(empty)).all()
    assert (model.impute(empty)[:, :, 2] == 1.0).all()


class TestWarmStart:
    X = make_latent_dbn("G2", 300, 4, random_state=0).X

    def test_goes_on_where_it_stopped(self):
        options = {"n_latents": 2, "cardinality": 4, "n_slices": 4, "random_state": 0}
        short = SEMDBN(**options, n_init=2, max_rounds=0, warm_start=True).fit(self.X)
        before = short.bic_
        short.set_params(max_rounds=50).fit(self.X)
        assert len(short.bics_) == 1
        assert short.converged_
        assert short.bic_ < before
        # Nothing is left to gain.
        graph, bic = short.graph_, short.bic_
        assert short.fit(self.X).graph_ == graph
        assert short.bic_ <= bic + 1e-6

    def test_refuses_another_model(self):
        model = SEMDBN(2, 2, n_slices=4, n_init=1, max_rounds=1, warm_start=True)
        model.fit(self.X)
        with pytest.raises(ValueError, match="warm_start must go on with the numbers"):
            model.set_params(cardinality=3).fit(self.X)
