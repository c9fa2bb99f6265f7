"""Choice of the kinds of emissions, and of fewer states once features have memory."""

import numpy as np
import pytest
from dbn_strategies import alone_graph, one_latent

from sklearn_latent import LGLPCCTemporal
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ModelMisfitWarning
from sklearn_latent.mixed import LatentDBN, TemporalGraph
from sklearn_latent.mixed._em.chain_em import EMOptions, fit_chain
from sklearn_latent.mixed._em.choice import (
    better_emissions,
    choose_emissions,
    fit_with_kinds,
    told_by_one_feature,
    with_fewer_states,
)
from sklearn_latent.mixed._emissions.categories import CategoricalMemory, Ordinal
from sklearn_latent.mixed._emissions.emission import Column
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
    graph = one_latent(4)
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


def sticky_panel(n=300, stay=0.9, seed=0, n_slices=6):
    """One latent of three features, of which the last also follows its own past."""
    rng = np.random.RandomState(seed)
    graph = one_latent(3)
    table = np.array([[0.85, 0.15], [0.15, 0.85]])
    keep = stay * np.eye(2) + (1 - stay) * table[:, None, :]
    memory = CategoricalMemory(table, keep)
    network = LatentDBN(
        graph,
        [2],
        [[0.5, 0.5]],
        [[[0.8, 0.2], [0.2, 0.8]]],
        [table, table, memory],
    )
    codes, _ = network.sample(n, n_slices, rng)
    return network, Panel.of(codes, [2, 2, 2])


def kinds_of(network):
    return [emission.kind for emission in network.emissions]


@pytest.mark.parametrize("seed", range(3))
def test_memory_is_found_where_it_is(seed):
    true, panel = sticky_panel(seed=seed)
    ascent = fit_chain(panel, true.graph, [2])
    found = choose_emissions(panel, ascent).state
    assert kinds_of(found) == ["categorical", "categorical", "repeat"]
    order = np.argsort(found.emission[0][:, 1])
    np.testing.assert_allclose(
        found.emissions[2].after[order], true.emissions[2].after, atol=0.12
    )


def test_memory_is_dropped_where_it_is_not():
    true, panel = sticky_panel(stay=0.0)
    flat = CategoricalMemory.flat(Column(panel.codes[:, :, 0], panel.weights, 2))
    table = true.emission[0]
    first = [CategoricalMemory(table, [[row, row] for row in table], flat.prior)] * 3
    ascent = fit_chain(panel, true.graph, [2], first)
    assert kinds_of(ascent.state) == ["memory"] * 3
    found = choose_emissions(panel, ascent).state
    assert kinds_of(found) == ["categorical"] * 3


def test_kinds_of_the_panel_are_kept():
    true, panel = sticky_panel()
    fixed = Panel(
        panel.codes,
        panel.weights,
        panel.n_categories,
        (("memory",), ("categorical",), ("categorical",)),
    )
    ascent = fit_chain(fixed, true.graph, [2])
    assert kinds_of(ascent.state) == ["memory", "categorical", "categorical"]
    assert kinds_of(choose_emissions(fixed, ascent).state) == kinds_of(ascent.state)


def test_one_slice_has_no_memory():
    true, panel = sticky_panel(n_slices=1)
    network = fit_chain(panel, true.graph, [2]).state
    assert {e.kind for e in better_emissions(panel, network)} == {"categorical"}


def test_a_constant_feature_of_no_latent_is_a_chain():
    rng = np.random.RandomState(0)
    codes = np.repeat(rng.randint(3, size=(100, 1, 1)), 5, axis=1)
    codes[rng.uniform(size=codes.shape) < 0.1] = -1
    panel = Panel.of(codes, [3])
    graph = alone_graph(1)
    found = choose_emissions(panel, fit_chain(panel, graph, [])).state
    assert kinds_of(found) == ["repeat"]
    assert (found.emissions[0].after[0].diagonal() > 0.98).all()


def test_choice_raises_the_criterion_of_sequences():
    true, panel = sticky_panel(n=150)
    ascent = fit_chain(panel, true.graph, [2])
    better = choose_emissions(panel, ascent)
    price = 0.5 * np.log(150 * 6)
    gain = better.statistics.log_likelihood - ascent.statistics.log_likelihood
    assert gain > price * (better.state.n_parameters - ascent.state.n_parameters)


@pytest.mark.parametrize("seed", range(3))
def test_order_is_worth_its_parameters(seed):
    rng = np.random.RandomState(seed)
    graph = one_latent(3)
    emission = Ordinal([-2.0, -0.5, 0.5, 2.0], [-1.5, 1.5])
    transition = [[0.8, 0.2], [0.2, 0.8]]
    true = LatentDBN(graph, [2], [[0.5, 0.5]], [transition], [emission] * 3)
    codes, _ = true.sample(200, 4, rng)
    kinds = (("categorical", "memory", "ordinal", "ordinal memory"),) * 3
    panel = Panel(codes, np.ones(200), np.full(3, 5), kinds)
    found = choose_emissions(panel, fit_chain(panel, graph, [2])).state
    assert kinds_of(found) == ["ordinal"] * 3
