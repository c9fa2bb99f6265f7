"""Fewer states, once features have a memory of their own."""

import numpy as np
import pytest

from sklearn_latent import LGLPCCTemporal
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ModelMisfitWarning
from sklearn_latent.mixed import LatentDBN, TemporalGraph
from sklearn_latent.mixed._em.chain_em import EMOptions, fit_chain
from sklearn_latent.mixed._em.choice import (
    fit_with_kinds,
    told_by_one_feature,
    with_fewer_states,
)
from sklearn_latent.mixed._panels.panel import Panel

GRAPHS = [
    TemporalGraph(np.kron(np.eye(2), np.ones(3)), edge, np.diag(past))
    for edge in ([[0, 1], [0, 0]], [[0, 0], [0, 0]])
    for past in ([1, 0], [1, 1])
]


def repeated(codes, seed, share=0.5):
    """The same values, some of which repeat the one before."""
    rng, codes = np.random.default_rng(seed), codes.copy()
    for t in range(1, codes.shape[1]):
        again = rng.random(codes[:, t].shape) < share
        codes[:, t] = np.where(again, codes[:, t - 1], codes[:, t])
    return codes


def draw(graph, n_states, seed=0, share=0.5):
    data = make_latent_dbn(graph, 300, 8, cardinality=n_states, random_state=seed)
    codes = repeated(data.codes, seed, share)
    return Panel.of(codes, data.network.n_categories)


def fit(panel, graph, cardinality, **options):
    """Kinds of emissions and tables, from the chain of features without memory."""
    quick = EMOptions(tol=1e-3)
    first = fit_chain(panel, graph, cardinality, None, quick).state.emission
    return fit_with_kinds(panel, graph, cardinality, first, quick, **options)


@pytest.mark.parametrize("graph", GRAPHS)
def test_states_that_stood_for_memory_are_joined(graph):
    panel = draw(graph, [3, 3])
    many = fit(panel, graph, [5, 4])
    few = fit(panel, graph, [5, 4], may_join=True)
    assert many.state.cardinality.tolist() == [5, 4]
    assert few.state.cardinality.tolist() == [3, 3]
    price = np.log(300)
    assert (
        2 * few.objective - price * few.state.n_parameters
        > 2 * many.objective - price * many.state.n_parameters
    )


def test_states_stay_where_no_feature_has_a_memory():
    panel = draw(GRAPHS[0], [3, 3], share=0.0)
    ascent = fit_chain(panel, GRAPHS[0], [5, 4])
    assert with_fewer_states(panel, ascent, EMOptions()) is ascent


def test_a_latent_keeps_two_states():
    panel = draw(GRAPHS[0], [2, 2])
    found = fit(panel, GRAPHS[0], [3, 2], may_join=True)
    assert found.state.cardinality.tolist() == [2, 2]


@pytest.mark.parametrize("cardinality", ["auto", 5])
def test_the_estimator_joins_states_unless_their_number_is_given(cardinality):
    codes = draw(GRAPHS[0], [3, 3]).codes
    model = LGLPCCTemporal(8, cardinality=cardinality, max_iter=500, random_state=0)
    found = model.fit(codes).cardinality_.tolist()
    assert found == ([3, 3] if cardinality == "auto" else [5, 5])


@pytest.mark.parametrize("n_telling, found", [(0, []), (1, [0]), (2, [])])
def test_states_that_one_feature_tells_apart(n_telling, found):
    # Two of three states are the same but for the first features.
    alike, told = (
        [[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]],
        [[0.8, 0.2], [0.1, 0.9], [0.9, 0.1]],
    )
    emission = [told if f < n_telling else alike for f in range(4)]
    graph = TemporalGraph(np.ones((1, 4)), [[0]], [[1]])
    transition = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    network = LatentDBN(graph, [3], [np.full(3, 1 / 3)], [transition], emission)
    codes = network.sample(500, 5, random_state=0)[0]
    panel = Panel.of(codes, [2] * 4)
    ascent = fit_chain(panel, graph, [3], network, EMOptions(max_iter=5, tol=0.0))
    assert told_by_one_feature(ascent, panel).tolist() == found


def test_a_feature_of_two_latents_is_named():
    data = make_latent_dbn("G2", 500, 5, random_state=0)
    rng, both = np.random.default_rng(0), data.Z.sum(axis=2) % 4
    other = rng.integers(4, size=both.shape)
    seventh = np.where(rng.random(both.shape) < 0.8, both, other)
    codes = np.dstack([data.codes, seventh]).astype(float)
    with pytest.warns(ModelMisfitWarning, match="one feature alone: feature 6. It"):
        LGLPCCTemporal(5, random_state=0).fit(codes)
