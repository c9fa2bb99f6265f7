"""Emissions: each kind against plain loops, enumeration and optimisers."""

import numpy as np
import pytest
from dbn_strategies import (
    KINDS,
    alone_graph,
    emission_likelihood,
    mixed_dbns,
    one_latent,
    random_dbn,
    random_emission,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import linregress, norm
from sklearn.mixture import GaussianMixture

from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import LatentDBN
from sklearn_latent.mixed._em.chain_em import (
    EMOptions,
    first_network,
    fit_chain,
    replace_tables,
)
from sklearn_latent.mixed._emissions.categories import (
    MEMORY_SMOOTHING,
    Categorical,
    CategoricalMemory,
    Ordinal,
)
from sklearn_latent.mixed._emissions.emission import SMOOTHING, Column
from sklearn_latent.mixed._emissions.kinds import (
    KINDS as CLASSES,
)
from sklearn_latent.mixed._emissions.kinds import (
    as_emission,
    marginal_tables,
    n_free,
)
from sklearn_latent.mixed._emissions.layout import Layout
from sklearn_latent.mixed._emissions.numbers import VARIANCE_FLOOR, Gaussian, LogNormal
from sklearn_latent.mixed._inference.chain_data import Patterns
from sklearn_latent.mixed._panels.panel import Panel
from sklearn_latent.mixed._tables import free_parameters

CODES = np.array([[0, 2], [1, -1], [-1, 0], [0, 1]])
WIDTHS = [2, 3]

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)
NUMBERS = {kind for kind, one in CLASSES.items() if one.is_numeric}
every_kind = pytest.mark.parametrize("kind", KINDS)


def values_and_previous(emission, seed, n=200):
    """Values of a feature with gaps, drawn from the emission."""
    rng = np.random.RandomState(seed)
    states = rng.randint(emission.n_states, size=(n, 2))
    values = emission.draw(states, rng).astype(float)
    values[rng.uniform(size=values.shape) < 0.2] = np.nan
    return values[:, 1], values[:, 0], states[:, 1]


class TestLayout:
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
        names = type(emission)._fields
        if not emission.is_numeric:
            # Locations and thresholds can be shifted together.
            names = ("table", "after") if emission.has_memory else ("table",)
        for name in names:
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
            if kind == "lognormal memory":
                # Unknown logarithms before are taken as normal, which a mixture is not.
                found[1:, 1] = drawn[1:, 1]
        else:
            drawn = (values[:, :, None] == np.arange(3)).mean(axis=0)
        np.testing.assert_allclose(found, drawn, atol=0.03)

    def test_a_known_value_is_what_the_next_follows(self, kind):
        emission = self.emission(kind, n_states=2, seed=4)
        rng = np.random.RandomState(0)
        drawn = emission.draw(np.tile([0, 1], (100_000, 1)), rng)
        value = np.median(drawn[:, 0])
        after = drawn[np.abs(drawn[:, 0] - value) < 0.05, 1]
        posterior = np.array([[[1.0, 0.0], [0.0, 1.0]]])
        found = emission.predicted(posterior, np.array([[value, np.nan]]))[0, 1]
        if emission.is_numeric:
            np.testing.assert_allclose(found, [after.mean(), after.std()], atol=0.03)
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
        graph = alone_graph(1)
        chain = CategoricalMemory([[0.2, 0.8]], [[[0.9, 0.1], [0.3, 0.7]]])
        network = LatentDBN(graph, [], [], [], [chain])
        codes = np.array([[[0], [0], [1], [-1], [1]]])
        expected = np.log([0.2, 0.9, 0.1, 0.8]).sum()
        np.testing.assert_allclose(network.log_likelihood(codes), [expected])
        np.testing.assert_allclose(network.predictive(codes)[0][0, 3], [0.3, 0.7])
        assert network.impute(codes)[0, 3, 0] == 1


class TestOrdinal:
    def test_scoring_equals_an_optimiser(self):
        rng = np.random.default_rng(5)
        counts = rng.gamma(0.5, 10.0, (3, 4))
        found = Ordinal([0.0, 1.0, 2.0], [0.0, 0.0, 0.0]).fitted(counts, 0.0)

        def loss(parameters):
            cuts = np.cumsum([parameters[0], *np.exp(parameters[1:3])])
            location = np.array([0.0, *parameters[3:]])
            below = expit(cuts - location[:, None])
            below = np.column_stack([np.zeros(3), below, np.ones(3)])
            return -(counts * np.log(np.diff(below, axis=1))).sum()

        best = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8})
        value = found.expected_log_likelihood(counts)
        assert value == pytest.approx(-best.fun, abs=1e-6)
        np.testing.assert_allclose(found.location[1:], best.x[3:], atol=1e-4)
        assert found.n_free == 4 + 3 - 2

    def test_two_categories_are_a_table(self):
        counts = np.array([[30.0, 10.0], [5.0, 20.0]])
        ordinal = Ordinal([0.0], [0.0]).fitted(counts)
        table = Categorical([[0.5, 0.5]]).fitted(counts)
        np.testing.assert_allclose(ordinal.table, table.table, atol=1e-6)
        assert ordinal.n_free == table.n_free

    def test_far_away_states_keep_their_logarithms(self):
        found = Ordinal([-1.0, 1.0], [0.0, 60.0, -60.0])
        np.testing.assert_allclose(found.natural[1, :2], [-61, -59], atol=0.2)
        np.testing.assert_allclose(found.natural[2, 1:], [-59, -61], atol=0.2)

    def test_memory_has_few_parameters(self):
        emission = random_emission("ordinal memory", 3, 5, np.random.default_rng(0))
        assert emission.n_free == 2 * (4 + 2) + 4

    def test_separated_states_without_prior(self):
        counts = np.array([[50.0, 0.0, 0.0], [0.0, 0.0, 50.0]])
        found = Ordinal([0.0, 1.0], [0.0, 0.0]).fitted(counts, 0.0)
        assert np.isfinite(found.location).all()
        assert found.table[0, 0] > 0.99
        assert found.table[1, 2] > 0.99

    def test_wrong_thresholds(self):
        with pytest.raises(ValueError, match="thresholds must increase"):
            Ordinal([1.0, 0.0], [0.0])


def number_panel(numbers, kind="gaussian"):
    """A panel of numbers (n, n_slices, n_observed), in two bins."""
    numbers = np.asarray(numbers, dtype=float)
    codes = np.where(np.isnan(numbers), -1, numbers > numbers[0, 0, 0])
    widths = np.full(numbers.shape[2], 2)
    kinds = ((kind,),) * numbers.shape[2]
    return Panel(codes.astype(int), np.ones(len(codes)), widths, kinds, numbers)


def fit_normal(panel, graph, cardinality, options):
    """Fit a network of which no number is far from its state."""
    first = first_network(panel, graph, cardinality, None)
    emissions = [emission._with(contamination=0.0) for emission in first.emissions]
    first = replace_tables(first, emission=emissions)
    return fit_chain(panel, graph, cardinality, first, options)


class TestGaussian:
    def test_one_state_is_the_normal_distribution_of_the_column(self):
        numbers = np.random.default_rng(0).normal(3, 2, (50, 4, 1))
        numbers[::7, 2] = np.nan
        panel = number_panel(numbers)
        network = fit_normal(panel, alone_graph(1), [], EMOptions()).state
        known = numbers[~np.isnan(numbers)]
        emission = network.emissions[0]
        np.testing.assert_allclose(emission.mean, known.mean(), rtol=1e-12)
        np.testing.assert_allclose(emission.std, known.std(), rtol=1e-12)
        total = norm.logpdf(known, known.mean(), known.std()).sum()
        assert network.log_likelihood(panel.values).sum() == pytest.approx(total)

    def test_one_slice_is_a_gaussian_mixture(self):
        rng = np.random.default_rng(1)
        means = np.array([[0, 0, 0], [4, -3, 1], [-3, 3, 5.0]])
        rows = means[rng.integers(0, 3, 600)] + rng.normal(size=(600, 3))
        graph = one_latent(3, 0)
        start = [
            Gaussian(means[:, f], np.ones(3), rows[:, f].mean(), rows[:, f].std())
            for f in range(3)
        ]
        options = EMOptions(max_iter=500, tol=1e-9, smoothing=0.0)
        network = fit_chain(
            number_panel(rows[:, None]), graph, [3], start, options
        ).state
        mixture = GaussianMixture(
            3, covariance_type="diag", means_init=means, tol=1e-9, reg_covar=0
        ).fit(rows)
        found = network.log_likelihood(rows[:, None])
        np.testing.assert_allclose(found, mixture.score_samples(rows), atol=1e-3)
        np.testing.assert_allclose(
            network.posterior(rows[:, None])[0][:, 0],
            mixture.predict_proba(rows),
            atol=1e-3,
        )

    @pytest.mark.parametrize("kind", ["lognormal", "lognormal memory"])
    def test_logarithms_have_densities_of_numbers(self, kind):
        logs = np.random.default_rng(6).normal(size=(60, 3, 2))
        graph = one_latent(2)
        options = EMOptions(2000, 1e-9)
        normal = number_panel(logs, kind.replace("lognormal", "gaussian"))
        one = fit_normal(normal, graph, [2], options)
        two = fit_normal(number_panel(np.exp(logs), kind), graph, [2], options)
        change = one.statistics.log_likelihood - two.statistics.log_likelihood
        assert change == pytest.approx(logs.sum(), abs=1e-3)

    def test_numbers_far_from_all_others_have_a_likelihood(self):
        emission = Gaussian([0.0], [0.1], 0.0, 0.1)
        values = np.array([1e308, -1e308])
        found = emission.design(values, values) @ emission.natural.T
        assert np.isfinite(found).all()
        assert (found < -1e90).all()

    def test_numbers_that_are_not_positive_are_all_but_impossible(self):
        emission = LogNormal([0.0, 1.0], [1.0, 1.0])
        values = np.array([0.0, -1.0, np.nan])
        found = emission.design(values, values) @ emission.natural.T
        assert (found[:2] < -1e4).all()
        assert np.isfinite(found).all()
        assert (found[2] == 0).all()

    def test_spread_of_numbers_whose_squares_overflow(self):
        emission = LogNormal([300.0, -600.0], [15.0, 20.0])
        mean, spread = emission.predicted([[[0.5, 0.5]]], [[np.nan]])[0, 0]
        assert 0.0 < mean < spread < np.inf

    @pytest.mark.parametrize("kind", ["gaussian", "gaussian memory"])
    @pytest.mark.parametrize(
        ("shift", "scale"),
        [(1e9, 1.0), (0, 1e-9), (0, 1e-300), (-5, 1e150), (0, 1e307)],
    )
    def test_units_do_not_matter(self, kind, shift, scale):
        rng = np.random.default_rng(2)
        states = rng.integers(2, size=(80, 3, 1))
        numbers = np.round(4.0 * states + rng.normal(size=(80, 3, 2)), 3)
        graph = one_latent(2)
        plain, moved = (
            fit_chain(
                number_panel(values, kind), graph, [2], options=EMOptions(2000, 1e-9)
            )
            for values in (numbers, shift + scale * numbers)
        )
        change = numbers.size * np.log(scale)
        one, two = (found.statistics.log_likelihood for found in (plain, moved))
        assert two + change == pytest.approx(one, abs=1e-3)
        for a, b in zip(plain.state.emissions, moved.state.emissions, strict=True):
            np.testing.assert_allclose((b.mean - shift) / scale, a.mean, atol=1e-4)

    def test_regression_is_least_squares(self):
        rng = np.random.default_rng(3)
        numbers = np.cumsum(rng.normal(size=(40, 6, 1)), axis=1)
        numbers[rng.random(numbers.shape) < 0.1] = np.nan
        panel = number_panel(numbers, "gaussian memory")
        options = EMOptions(smoothing=0.0)
        emission = fit_normal(panel, alone_graph(1), [], options).state.emissions[0]
        now, before = numbers[:, 1:, 0].ravel(), numbers[:, :-1, 0].ravel()
        both = ~np.isnan(now + before)
        found = linregress(before[both] - emission.center, now[both])
        np.testing.assert_allclose(emission.slope, found.slope, rtol=1e-8)
        np.testing.assert_allclose(emission.level, found.intercept, atol=1e-8)

    @pytest.mark.parametrize("kind", ["gaussian", "lognormal", "gaussian memory"])
    def test_a_far_value_costs_little_and_moves_nothing(self, kind):
        rng = np.random.default_rng(8)
        states = rng.integers(2, size=(150, 1, 1))
        numbers = np.exp(3.0 * states + 0.5 * rng.normal(size=(150, 3, 3)))
        if "gaussian" in kind:
            numbers = np.log(numbers)
        graph = one_latent(3)
        clean = fit_chain(number_panel(numbers, kind), graph, [2]).state
        usual = clean.log_likelihood(numbers)
        for far in 10.0 ** np.array([2, 4, 8, 16]):
            odd = numbers.copy()
            odd[0, 1, 0] = far
            found = fit_chain(number_panel(odd, kind), graph, [2]).state
            others = found.log_likelihood(odd)[1:] - usual[1:]
            assert abs(others.sum()) < 8.0
            # As a new value, and as one that was learned from.
            for network in (clean, found):
                assert (
                    network.log_likelihood(odd)[0] > usual.min() - 2 * np.log(far) - 30
                )

    @pytest.mark.parametrize("kind", ["gaussian", "lognormal", "gaussian memory"])
    def test_clean_numbers_lose_a_nat(self, kind):
        rng = np.random.default_rng(9)
        numbers = rng.normal(size=(200, 2, 1))
        numbers = np.exp(numbers) if kind == "lognormal" else numbers
        panel = number_panel(numbers, kind)
        plain = fit_normal(panel, alone_graph(1), [], EMOptions()).state
        found = fit_chain(panel, alone_graph(1), []).state
        gain = found.log_likelihood(numbers) - plain.log_likelihood(numbers)
        assert gain.sum() > -1.0
        assert found.n_parameters == plain.n_parameters + 1

    @few
    @given(st.sampled_from(sorted(NUMBERS)), seeds)
    def test_expected_log_likelihood_is_a_bound(self, kind, seed):
        rng = np.random.default_rng(seed)
        one, other = (random_emission(kind, 2, 3, rng, far) for far in (0.2, 0.05))
        other = one._with(**{name: getattr(other, name) for name in ("mean", "std")})
        values = one.draw(rng.integers(2, size=(50, 2)), rng)[:, :, None]
        patterns = Patterns(values, [one])
        mass = rng.dirichlet(np.ones(2), (50, 2))
        statistics = patterns.statistics(mass, [one])[0]
        for emission in (one, other, one.fitted(statistics, 0.0)):
            true = (patterns.log_likelihood([emission]) * mass.reshape(-1, 2)).sum()
            bound = emission.expected_log_likelihood(statistics)
            assert bound <= true + 1e-8
            if emission is one:
                assert bound == pytest.approx(true, abs=1e-8)

    def test_a_repeated_value_has_a_finite_density(self):
        numbers = np.random.default_rng(4).normal(size=(200, 1, 1))
        numbers[:100] = 0.25
        graph = one_latent(1, 0)
        options = EMOptions(max_iter=500, smoothing=0.0)
        network = fit_chain(number_panel(numbers), graph, [2], options=options).state
        least = np.sqrt(VARIANCE_FLOOR) * numbers.std()
        assert network.emissions[0].std.min() >= 0.999 * least
        assert np.isfinite(network.log_likelihood(numbers)).all()

    def test_constant_and_empty_columns(self):
        for value in (0.0, 0.1, 1e9, np.nan):
            numbers = np.full((5, 2, 1), value)
            network = fit_chain(number_panel(numbers), alone_graph(1), []).state
            assert np.isfinite(network.log_likelihood(numbers)).all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([0.0], [-1.0]), "std must hold positive"),
            (([np.nan], [1.0]), "mean must hold finite"),
            (([0.0], [1.0, 2.0]), r"std must have shape \(1,\)"),
            (([[0.0]], [1.0]), r"mean must have shape \(n_states,\)"),
            (([0.0], [1.0], 0.0, 0.0), "scale must hold positive"),
        ],
    )
    def test_wrong_parameters(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Gaussian(*arguments)

    def test_pgmpy_has_no_numbers(self):
        network = LatentDBN(alone_graph(1), [], [], [], [Gaussian([0.0], [1.0])])
        with pytest.raises(ValueError, match="got numbers in x0"):
            network.to_pgmpy()


@few
@given(mixed_dbns())
def test_networks_round_trip(network):
    again = LatentDBN.from_json(network.to_json())
    assert again == network
    assert hash(again) == hash(network)
    assert again.n_parameters == network.n_parameters


def test_emissions_of_a_network_are_checked():
    graph = one_latent(1)
    tables = [[0.5, 0.5]], [np.eye(2)]
    one = CategoricalMemory([[0.5, 0.5]], [np.eye(2)])
    with pytest.raises(ValueError, match=r"emission\[0\] must have 2 states.* got 1"):
        LatentDBN(graph, [2], *tables, [one])
    with pytest.raises(ValueError, match=r"emission\[0\] must have shape \(2, None\)"):
        LatentDBN(graph, [2], *tables, [[[0.5, 0.5]]])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_pgmpy_is_told_what_it_lacks():
    network = random_dbn(
        one_latent(3), [2], [2] * 3, 0, kinds=["categorical", "categorical", "memory"]
    )
    with pytest.warns(LatentWarning, match="own previous values: x2"):
        exported = network.to_pgmpy()
    assert exported.check_model()
