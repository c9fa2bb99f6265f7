"""Emissions: each kind against plain loops, enumeration and optimisers."""

import numpy as np
import pytest
from dbn_strategies import (
    KINDS,
    brute_force,
    emission_likelihood,
    mixed_dbns,
    random_dbn,
    random_emission,
    sequences,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.temporal import LatentDBN, TemporalGraph
from sklearn_latent.temporal._em.choice import better_emissions, choose_emissions
from sklearn_latent.temporal._em.em import EMOptions, fit_chain
from sklearn_latent.temporal._emissions.base import SMOOTHING, Column
from sklearn_latent.temporal._emissions.categorical import Categorical
from sklearn_latent.temporal._emissions.kinds import (
    KINDS as CLASSES,
)
from sklearn_latent.temporal._emissions.kinds import (
    as_emission,
    marginal_tables,
    n_free,
)
from sklearn_latent.temporal._emissions.layout import Layout
from sklearn_latent.temporal._emissions.memory import (
    MEMORY_SMOOTHING,
    CategoricalMemory,
)
from sklearn_latent.temporal._panels.panel import Panel
from sklearn_latent.temporal._tables import free_parameters

CODES = np.array([[0, 2], [1, -1], [-1, 0], [0, 1]])
WIDTHS = [2, 3]

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)
every_kind = pytest.mark.parametrize("kind", KINDS)


def values_and_previous(emission, seed, n=200):
    """Values of a feature with gaps, drawn from the emission."""
    rng = np.random.RandomState(seed)
    states = rng.randint(emission.n_states, size=(n, 2))
    values = emission.draw(states, rng).astype(float)
    values[rng.uniform(size=values.shape) < 0.2] = np.nan
    return values[:, 1], values[:, 0], states[:, 1]


class TestLayout:
    def test_indicators(self):
        rows = Layout(WIDTHS).indicators(CODES).toarray()
        expected = [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0]]
        np.testing.assert_array_equal(rows, expected)

    def test_tables_of_features_sum_to_one(self):
        layout = Layout(WIDTHS)
        counts = np.arange(1.0, 11.0).reshape(2, 5)
        tables = layout.split(layout.normalized(counts))
        assert [table.shape for table in tables] == [(2, 2), (2, 3)]
        np.testing.assert_allclose(tables[0], [[1 / 3, 2 / 3], [6 / 13, 7 / 13]])
        np.testing.assert_allclose(tables[1].sum(axis=1), 1)

    def test_free_parameters_are_those_of_the_tables(self):
        layout = Layout(WIDTHS)
        tables = layout.split(layout.normalized(np.ones((4, 5))))
        assert layout.n_free(4) == n_free(tables) == free_parameters(tables) == 4 * 3

    def test_no_feature(self):
        layout = Layout([])
        assert layout.split(np.ones((2, 0))) == []
        assert layout.indicators(np.zeros((3, 0), int)).shape == (3, 0)


@every_kind
class TestEveryKind:
    def emission(self, kind, n_states=3, width=3, seed=0):
        return as_emission(
            random_emission(kind, n_states, width, np.random.default_rng(seed))
        )

    def test_likelihood_is_linear_in_statistics(self, kind):
        emission = self.emission(kind)
        values, previous, _ = values_and_previous(emission, 0)
        found = emission.design(values, previous) @ emission.natural.T
        expected = [
            [
                np.log(emission_likelihood(emission, s, value, before))
                for s in range(len(emission))
            ]
            for value, before in zip(values, previous, strict=True)
        ]
        np.testing.assert_allclose(found, expected, atol=1e-9)

    def test_fitted_maximizes_the_posterior(self, kind):
        emission = self.emission(kind, seed=1)
        values, previous, states = values_and_previous(emission, 1)
        statistics = np.eye(3)[states].T @ emission.design(values, previous)
        best = emission.fitted(statistics, 0.6)

        def objective(other):
            value = other.expected_log_likelihood(statistics)
            return value + other.log_prior(0.6)

        assert objective(best) > objective(emission)
        for seed in range(10):
            # Statistics of somewhat other data lead to somewhat other parameters.
            noise = np.random.RandomState(seed).uniform(0.7, 1.4, len(values))
            weighted = np.eye(3)[states].T * noise
            other = best.fitted(weighted @ emission.design(values, previous), 0.6)
            assert objective(other) < objective(best)

    def test_many_draws_return_the_emission(self, kind):
        emission = self.emission(kind, n_states=2, seed=2)
        rng = np.random.RandomState(0)
        states = rng.randint(2, size=(4000, 5))
        values = emission.draw(states, rng)
        assert values.shape == states.shape
        previous = np.full(values.shape, np.nan)
        previous[:, 1:] = values[:, :-1]
        design = emission.design(values.ravel(), previous.ravel())
        found = emission.fitted(np.eye(2)[states.ravel()].T @ design, SMOOTHING)
        for name in type(emission)._fields:
            if name != "prior":
                np.testing.assert_allclose(
                    getattr(found, name), getattr(emission, name), atol=0.06
                )

    def test_predictions_are_means_of_draws(self, kind):
        emission = self.emission(kind, n_states=2, seed=3)
        rng = np.random.RandomState(1)
        n = 20_000
        posterior = np.array([[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]])
        states = (rng.uniform(size=(n, 3)) < posterior[:, 1]).astype(int)
        values = emission.draw(states, rng)
        missing = np.full((1, 3), np.nan)
        found = emission.predicted(posterior[None], missing)[0]
        if emission.is_numeric:
            drawn = np.stack([values.mean(axis=0), values.std(axis=0)], axis=1)
        else:
            drawn = (values[:, :, None] == np.arange(3)).mean(axis=0)
        np.testing.assert_allclose(found, drawn, atol=0.03)

    def test_a_known_value_is_what_the_next_follows(self, kind):
        emission = self.emission(kind, n_states=2, seed=4)
        values = np.array([[1.0, np.nan]])
        posterior = np.array([[[1.0, 0.0], [0.0, 1.0]]])
        found = emission.predicted(posterior, values)[0, 1]
        rng = np.random.RandomState(0)
        states = np.tile([0, 1], (200_000, 1))
        drawn = emission.draw(states, rng)
        after = drawn[np.abs(drawn[:, 0] - 1) < 0.05, 1]
        if emission.is_numeric:
            np.testing.assert_allclose(found, [after.mean(), after.std()], atol=0.05)
        else:
            shares = np.bincount(after, minlength=3) / len(after)
            np.testing.assert_allclose(found, shares, atol=0.02)

    def test_statistics_of_any_number_of_states_fit(self, kind):
        emission = self.emission(kind, n_states=1)
        values, previous, _ = values_and_previous(emission, 5)
        design = emission.design(values, previous)
        states = np.random.default_rng(0).dirichlet(np.ones(4), len(values))
        assert len(emission.fitted(states.T @ design)) == 4

    def test_no_data_give_an_emission(self, kind):
        emission = self.emission(kind)
        empty = np.zeros_like(emission.natural)
        found = emission.fitted(empty)
        assert np.isfinite(found.natural).all()
        assert found.expected_log_likelihood(empty) == 0.0
        gaps = np.full((3, 2), np.nan if emission.is_numeric else -1)
        flat = CLASSES[kind].flat(Column(gaps, np.ones(3), 3))
        assert np.isfinite(flat.natural).all()

    def test_typical_shares(self, kind):
        emission = self.emission(kind)
        assert emission.typical.shape[0] == 3
        np.testing.assert_allclose(emission.typical.sum(axis=1), 1.0)

    def test_round_trips(self, kind):
        emission = self.emission(kind)
        again = type(emission).from_json(emission.to_json())
        assert again == emission
        assert hash(again) == hash(emission)
        assert repr(emission) == f"{type(emission).__name__}(n_states=3)"


class TestCategorical:
    def test_marginals_weigh_sequences(self):
        panel = Panel.of(CODES[:, None], WIDTHS, [1.0, 2.0, 4.0, 8.0])
        first, second = marginal_tables(panel)
        prior = SMOOTHING / np.array(WIDTHS)
        np.testing.assert_allclose(
            first, np.array([[9, 2]] + prior[0]) / (11 + SMOOTHING)
        )
        np.testing.assert_allclose(
            second, np.array([[4, 8, 1]] + prior[1]) / (13 + SMOOTHING)
        )

    def test_score_is_that_of_shares(self):
        counts = np.array([[3.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
        found = Categorical([[0.5, 0.5]]).fitted(counts, 0.0)
        value = 3 * np.log(3 / 4) + np.log(1 / 4)
        assert found.expected_log_likelihood(counts) == pytest.approx(value)
        assert found.n_free == 3

    def test_no_smoothing_no_prior(self):
        assert Categorical([[1.0, 0.0]]).log_prior(0.0) == 0.0

    def test_an_impossible_category_is_never_drawn(self):
        table = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
        states = np.repeat([[0], [1]], 5000, axis=1)
        codes = Categorical(table).draw(states, np.random.RandomState(0))
        for row, probabilities in zip(codes, table, strict=True):
            shares = np.bincount(row, minlength=3) / row.size
            np.testing.assert_allclose(shares, probabilities, atol=0.03)
            assert (shares[probabilities == 0] == 0).all()


class TestMemory:
    def test_rows_shrink_to_what_follows_in_all_states(self):
        codes = np.array([[0, 0, 1], [1, 1, -1], [0, -1, 1]])
        flat = CategoricalMemory.flat(Column(codes, np.array([1.0, 2.0, 4.0]), 2))
        # 0 -> 0, 0 -> 1, and 1 -> 1 twice; the shares of later values are 1 and 3.
        shares = np.array([1 + SMOOTHING / 2, 3 + SMOOTHING / 2]) / (4 + SMOOTHING)
        expected = np.array([[1, 1], [0, 2]]) + MEMORY_SMOOTHING * shares
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(flat.prior, expected)
        unseen = flat.fitted(np.zeros((2, 6)))
        np.testing.assert_allclose(unseen.after, [expected] * 2)
        np.testing.assert_allclose(unseen.table, 0.5)

    def test_free_parameters(self):
        emission = random_emission("memory", 4, 3, np.random.default_rng(0))
        assert emission.n_free == 4 * 2 + 4 * 3 * 2

    def test_wrong_shapes(self):
        with pytest.raises(ValueError, match=r"after must have shape \(1, 2, 2\)"):
            CategoricalMemory([[0.5, 0.5]], [[[1.0]]])
        with pytest.raises(ValueError, match="prior must hold probabilities"):
            CategoricalMemory([[0.5, 0.5]], [np.eye(2)], np.ones((2, 2)))

    def test_a_feature_of_no_latent_is_a_markov_chain(self):
        graph = TemporalGraph(np.zeros((0, 1)), np.zeros((0, 0)), np.zeros((0, 0)))
        chain = CategoricalMemory([[0.2, 0.8]], [[[0.9, 0.1], [0.3, 0.7]]])
        network = LatentDBN(graph, [], [], [], [chain])
        codes = np.array([[[0], [0], [1], [-1], [1]]])
        expected = np.log([0.2, 0.9, 0.1, 0.8]).sum()
        np.testing.assert_allclose(network.log_likelihood(codes), [expected])
        np.testing.assert_allclose(network.predictive(codes)[0][0, 3], [0.3, 0.7])
        assert network.impute(codes)[0, 3, 0] == 1


@few
@given(mixed_dbns(), st.integers(1, 3), seeds)
def test_networks_equal_enumeration(network, n_slices, seed):
    values = sequences(network, 3, n_slices, seed)
    log_likelihood = network.log_likelihood(values)
    posterior = network.posterior(values)
    viterbi = network.viterbi(values, return_log_probability=True)[1]
    for i, sequence in enumerate(values):
        paths, probability = brute_force(network, sequence)
        total = probability.sum()
        np.testing.assert_allclose(log_likelihood[i], np.log(total), atol=1e-9)
        np.testing.assert_allclose(viterbi[i], np.log(probability.max()), atol=1e-9)
        for j, card in enumerate(network.cardinality):
            for t in range(n_slices):
                share = np.bincount(paths[:, t, j], probability, minlength=card)
                np.testing.assert_allclose(posterior[j][i, t], share / total, atol=1e-9)


@few
@given(mixed_dbns(), st.integers(1, 3), seeds)
def test_statistics_equal_enumeration(network, n_slices, seed):
    values = sequences(network, 3, n_slices, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 3)
    found = network.expected_counts(values, weights).emission
    expected = [np.zeros_like(emission.natural) for emission in network.emissions]
    gaps = np.full(network.n_observed, np.nan)
    numeric = np.array([emission.is_numeric for emission in network.emissions])
    for weight, sequence in zip(weights, values.astype(float), strict=True):
        paths, probability = brute_force(network, sequence)
        share = weight * probability / probability.sum()
        sequence[(sequence < 0) & ~numeric] = np.nan
        for t, f in np.ndindex(n_slices, network.n_observed):
            before = sequence[t - 1] if t else gaps
            row = network.emissions[f].design(sequence[t, [f]], before[[f]])
            j = network._parents[f]
            state = paths[:, t, j] if j >= 0 else np.zeros(len(paths), int)
            mass = np.bincount(state, share, minlength=len(expected[f]))
            expected[f] += mass[:, None] * row.toarray()
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)


@few
@given(mixed_dbns(), seeds)
def test_statistics_add_up(network, seed):
    values = sequences(network, 5, 3, seed)
    whole = network.expected_counts(values)
    parts = network.expected_counts(values[:2]) + network.expected_counts(values[2:])
    twice = network.expected_counts(values, [2, 1, 1, 1, 1])
    again = network.expected_counts(np.concatenate([values[:1], values]))
    for one, two in [(whole, parts), (twice, again)]:
        assert np.isclose(one.log_likelihood, two.log_likelihood)
        for a, b in zip(one.emission, two.emission, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


@few
@given(mixed_dbns())
def test_networks_round_trip(network):
    again = LatentDBN.from_json(network.to_json())
    assert again == network
    assert hash(again) == hash(network)
    assert again.n_parameters == network.n_parameters


@few
@given(mixed_dbns(), seeds)
def test_em_climbs(network, seed):
    values, _ = network.sample(30, 3, random_state=seed % 2**31)
    panel = panel_of(network, values)
    objectives = []
    fit_chain(
        panel,
        network.graph,
        network.cardinality,
        random_dbn(
            network.graph,
            network.cardinality,
            panel.n_categories,
            seed,
            kinds=[emission.kind for emission in network.emissions],
        ),
        EMOptions(max_iter=15, tol=0.0),
        report=lambda n, value: objectives.append(value),
    )
    assert (np.diff(objectives) >= -1e-8 * np.abs(objectives[1:])).all()


def panel_of(network, values):
    """A panel of values drawn from a network."""
    return Panel.of(values, network.n_categories)


# Choice of kinds


def sticky_panel(n=300, stay=0.9, seed=0, n_slices=6):
    """One latent of three features, of which the last also follows its own past."""
    rng = np.random.RandomState(seed)
    graph = TemporalGraph([[1, 1, 1]], [[0]], [[1]])
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
    assert kinds_of(found) == ["categorical", "categorical", "memory"]
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
    graph = TemporalGraph(np.zeros((0, 1)), np.zeros((0, 0)), np.zeros((0, 0)))
    found = choose_emissions(panel, fit_chain(panel, graph, [])).state
    assert kinds_of(found) == ["memory"]
    assert (found.emissions[0].after[0].diagonal() > 0.98).all()


def test_choice_raises_the_criterion_of_sequences():
    true, panel = sticky_panel(n=150)
    ascent = fit_chain(panel, true.graph, [2])
    better = choose_emissions(panel, ascent)
    price = 0.5 * np.log(150 * 6)
    gain = better.statistics.log_likelihood - ascent.statistics.log_likelihood
    assert gain > price * (better.state.n_parameters - ascent.state.n_parameters)


def test_emissions_of_a_network_are_checked():
    graph = TemporalGraph([[1]], [[0]], [[1]])
    tables = [[0.5, 0.5]], [np.eye(2)]
    one = CategoricalMemory([[0.5, 0.5]], [np.eye(2)])
    with pytest.raises(ValueError, match=r"emission\[0\] must have 2 states.* got 1"):
        LatentDBN(graph, [2], *tables, [one])
    with pytest.raises(ValueError, match=r"emission\[0\] must have shape \(2, None\)"):
        LatentDBN(graph, [2], *tables, [[[0.5, 0.5]]])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_pgmpy_is_told_what_it_lacks():
    network = sticky_panel()[0]
    with pytest.warns(LatentWarning, match="own previous values: x2"):
        exported = network.to_pgmpy()
    assert exported.check_model()
