"""Whether rows follow a Gaussian network: quiet if they do, specific if not."""

import numpy as np
import pytest
from gaussian_strategies import random_linear_network, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent import IdealParentGaussianBN
from sklearn_latent._answers.diagnosis import diagnose as diagnose_subject
from sklearn_latent._answers.statistics import (
    Scale,
    correlations,
    dependence_of_sizes,
)
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian import GaussianNetwork, Margin
from sklearn_latent.gaussian._misfit_of_scores import complete, subject_of

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning"
)

COLUMNS = ["check", "what", "observed", "expected", "z", "ok"]


class Log(Margin):
    name = "log"

    def scores(self, values):
        return np.log(values)

    def log_slopes(self, values):
        return -np.log(values)

    def values(self, scores):
        return np.exp(scores)


def failing(checks):
    return set(checks.check[~checks.ok])


def checks_of(network, X, **options):
    names = [f"x{j}" for j in range(network.n_features)]
    latents = [f"latent{k}" for k in range(network.n_latents)]
    return diagnose_subject(subject_of(network, X, names, latents, **options))


def diagnose(network, X, **options):
    return failing(checks_of(network, X, **options))


def learn(X, **options):
    return IdealParentGaussianBN(margins="normal", **options).fit(X)


class TestStatistics:
    def test_correlations_are_0_of_constant_columns(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 4))
        X[:, 3] = 7.0
        r = correlations(X, X)
        np.testing.assert_allclose(r[:3, :3], np.corrcoef(X[:, :3].T), atol=1e-12)
        np.testing.assert_array_equal(r[3], 0.0)

    def test_dependence_of_sizes_is_that_of_drawn_ones(self):
        rng = np.random.default_rng(0)
        for r in (0.0, 0.5, -0.9):
            sizes = np.abs(rng.multivariate_normal([0, 0], [[1, r], [r, 1]], 100_000))
            drawn = np.corrcoef(sizes.T)[0, 1]
            assert dependence_of_sizes(r) == pytest.approx(drawn, abs=0.01)

    def test_scales_are_normal_scores(self):
        drawn = np.exp(np.random.default_rng(0).normal(size=20_000))
        scale = Scale.of(drawn)
        values = np.exp([-2.0, 0.0, 1.5])
        assert scale.score(values) == pytest.approx([-2.0, 0.0, 1.5], abs=0.05)
        assert scale.value(scale.score(values)) == pytest.approx(values)
        assert scale.score(np.array([-1.0, 1e3, 1e4])).tolist() == [-3.5, 3.5, 3.5]
        exact = Scale.normal(5.0, 2.0)
        assert exact.score(np.array([1.0, 9.0, 105.0])) == pytest.approx([-2, 2, 50])
        assert exact.value(np.array([-2.0, 50.0])) == pytest.approx([1.0, 105.0])


class TestNoise:
    @settings(deadline=None, max_examples=20)
    @given(seeds, st.integers(0, 2))
    def test_squares_add_up_to_the_distance_of_the_row(self, seed, n_latents):
        network = random_linear_network(6, seed, n_latents=n_latents)
        n = network.n_features
        X = network.sample(5, random_state=seed)[0]
        squares = (noise_of(network, X) ** 2).sum(axis=1)
        mean, covariance = network.joint()
        gap, inverse = X - mean[:n], np.linalg.pinv(covariance[:n, :n])
        expected = np.einsum("ri,ij,rj->r", gap, inverse, gap)
        np.testing.assert_allclose(squares, expected, rtol=1e-4, atol=1e-6)

    def test_without_latents_it_is_that_given_the_parents(self):
        data = make_gaussian_bn(6, n_samples=20, random_state=0)
        network = data.network
        noise = data.X - network.conditional_means(data.X)
        np.testing.assert_allclose(
            noise_of(network, data.X),
            noise / np.sqrt(network.noise_variance),
            atol=1e-8,
        )


def noise_of(network, X):
    names = [f"x{j}" for j in range(network.n_features)]
    return subject_of(network, X, names, [f"l{k}" for k in range(9)]).noise(X)


def hide(X, rng, cause=0, effect=1):
    """Values of a column are missing where another is large."""
    X = X.copy()
    large = X[:, cause] > np.quantile(X[:, cause], 0.6)
    X[rng.random(len(X)) < np.where(large, 0.8, 0.05), effect] = np.nan
    return X


class TestCompletion:
    """Missing values are drawn given the others, so that completed rows follow."""

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"n_latents": 2, "bipartite": True},
            {"link": "sigmoid"},
        ],
        ids=str,
    )
    def test_completed_columns_have_their_moments_back(self, options):
        data = make_gaussian_bn(5, n_samples=3000, random_state=1, **options)
        strength = np.abs(np.corrcoef(data.X.T)) - np.eye(5)
        cause, effect = np.unravel_index(strength.argmax(), (5, 5))
        gaps = hide(data.X, np.random.default_rng(0), cause, effect)
        filled = complete(data.network, gaps)
        known = ~np.isnan(gaps)
        np.testing.assert_array_equal(filled[known], data.X[known])
        spread = data.X.std(axis=0)
        bias = np.nanmean(gaps, axis=0)[effect] - data.X[:, effect].mean()
        assert abs(bias) > 0.1 * spread[effect]
        difference = (filled - data.X).mean(axis=0) / spread
        assert np.abs(difference).max() < 0.05
        assert np.corrcoef(filled.T) == pytest.approx(np.corrcoef(data.X.T), abs=0.05)

    def test_rows_of_classes(self):
        weights = np.zeros((2, 3, 3))
        network = GaussianNetwork(
            np.zeros((3, 3)),
            weights,
            [[0, 0, 0], [5, 5, 5]],
            np.ones((2, 3)),
            class_weight=[0.5, 0.5],
        )
        X = network.sample(500, random_state=0)[0]
        X[:, 2] = np.nan
        filled = complete(network, X)
        assert np.corrcoef(filled[:, 1:].T)[0, 1] > 0.7

    def test_the_order_of_rows_does_not_matter(self):
        data = make_gaussian_bn(4, n_samples=50, random_state=0)
        X = hide(data.X, np.random.default_rng(0))
        order = np.random.default_rng(1).permutation(50)
        filled = complete(data.network, X)
        np.testing.assert_array_equal(complete(data.network, X[order]), filled[order])


class TestCalibration:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"missing": 0.2},
            {"n_latents": 2, "bipartite": True, "missing": 0.1},
            {"link": "sigmoid"},
            {"noise": "multiplicative"},
        ],
        ids=str,
    )
    def test_few_tables_of_a_network_fail(self, options):
        failed = 0
        for seed in range(12):
            data = make_gaussian_bn(6, n_samples=300, random_state=seed, **options)
            failed += bool(diagnose(data.network, data.X) - {"near-duplicates"})
        assert failed <= 3  # 4 or more of 12 have a probability of 0.2%

    def test_values_missing_at_random_condemn_no_right_model(self):
        failed = 0
        for seed in range(10):
            X = make_gaussian_bn(5, n_samples=300, random_state=seed).X
            strength = np.abs(np.corrcoef(X.T)) - np.eye(5)
            pair = np.unravel_index(strength.argmax(), (5, 5))
            X = hide(X, np.random.default_rng(seed), *pair)
            failed += bool(failing(learn(X).diagnose(X)))
        assert failed <= 2  # 3 or more of 10 have a probability of 1.2%

    @pytest.mark.parametrize("error", [0.02, 0.5])
    def test_ranks_condemn_no_network_of_little_noise(self, error):
        """Ranks of bent columns are scores with errors, that small noise does not hide.

        Nor does a value beyond all others, next to a missing one.
        """
        weights = np.zeros((3, 3))
        weights[:2, 2] = 0.7
        network = GaussianNetwork(weights != 0, weights, [0] * 3, [1.0, 1.0, error])
        network = network.with_margins((Log(),) * 3)
        failed = 0
        for seed in range(10):
            X = network.sample(300, random_state=seed)[0]
            X[0, 0], X[0, 2] = np.exp(9.0), np.nan
            failed += bool(diagnose(network, X))
        assert failed <= 2  # 3 or more of 10 have a probability of 1.2%

    @pytest.mark.parametrize("bend", [False, True])
    def test_few_tables_of_a_learned_network_fail(self, bend):
        failed = np.zeros(2)
        for seed in range(6):
            X = make_gaussian_bn(5, n_samples=800, random_state=seed).X
            if bend:
                X = np.exp(X / X.std(axis=0))
            model = IdealParentGaussianBN(margins=Log() if bend else "auto")
            model.fit(X[:400])
            failed += [bool(failing(model.diagnose(part))) for part in (X[:400], X)]
        assert failed.max() <= 2


class TestViolations:
    """Each row of data breaks one assumption."""

    @staticmethod
    def chain(noise, curve=0.0, n=800):
        """Three features, each the cause of the next."""
        columns, before = [], np.zeros(n)
        for j in range(3):
            bend = curve * (before**2 - 1.0) if j else 0.0
            columns.append(0.8 * before + bend + noise(n))
            before = (columns[-1] - columns[-1].mean()) / columns[-1].std()
        return np.column_stack(columns)

    def test_skewed_noise(self):
        rng = np.random.default_rng(0)
        X = self.chain(lambda n: rng.exponential(size=n))
        assert "skewed noise" in failing(learn(X).diagnose(X))

    def test_heavy_tails(self):
        rng = np.random.default_rng(0)
        X = self.chain(lambda n: rng.standard_t(3, size=n))
        assert "tails" in failing(learn(X).diagnose(X))

    def test_curved_responses(self):
        rng = np.random.default_rng(0)
        X = self.chain(lambda n: rng.normal(size=n), curve=0.4)
        assert "curvature" in failing(learn(X).diagnose(X))

    def test_noise_that_grows(self):
        rng = np.random.default_rng(0)
        cause = rng.normal(size=800)
        effect = cause + np.exp(0.5 * cause) * rng.normal(size=800)
        X = np.column_stack([cause, effect])
        model = learn(X, required=[(0, 1)])
        assert "changing spread" in failing(model.diagnose(X))

    @pytest.mark.parametrize("seed", range(3))
    def test_noise_that_a_column_multiplies(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 3))
        X[:, 1] *= X[:, 0]
        assert "changing spread" in failing(learn(X).diagnose(X))

    def test_groups(self):
        rng = np.random.default_rng(0)
        centres = 4.0 * rng.normal(size=(3, 4))
        X = centres[rng.integers(3, size=400)] + rng.normal(size=(400, 4))
        checks = learn(X).diagnose(X)
        line = checks[checks.check == "groups"].iloc[0]
        assert (line.what, line.ok) == ("3 groups", False)
        assert line.observed < line.expected

    def test_missing_edges(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 1)) + rng.normal(size=(400, 4))
        assert failing(learn(X, max_parents=0).diagnose(X)) == {"pair"}
        assert not failing(learn(X, max_latents=1).diagnose(X))

    def test_other_means_and_spreads(self):
        X = make_gaussian_bn(4, n_samples=500, random_state=0).X
        model = learn(X)
        shifted = X + np.array([0.5 * X[:, 0].std(), 0, 0, 0])
        lines = model.diagnose(shifted)
        worst = lines[lines.check == "mean"].iloc[0]
        assert (worst.what, worst.ok) == ("x0", False)
        assert worst.observed == pytest.approx(shifted[:, 0].mean())
        assert worst.expected == pytest.approx(X[:, 0].mean())
        lines = model.diagnose(X.mean(axis=0) + 1.5 * (X - X.mean(axis=0)))
        assert not lines.ok[lines.check == "spread"].any()

    def test_near_duplicates(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 2))
        X = np.column_stack([X, X[:, 0] + 0.01 * rng.normal(size=200)])
        checks = learn(X).diagnose(X)
        line = checks[checks.check == "near-duplicates"].iloc[0]
        assert (line.what, line.ok) == ("x0, x2", False)

    def test_a_latent_that_nothing_shows(self):
        weights = np.zeros((3, 3))
        weights[2, :2] = 0.05
        network = GaussianNetwork(weights != 0, weights, [0] * 3, [1] * 3, n_latents=1)
        X = network.sample(300, random_state=0)[0]
        line = checks_of(network, X).iloc[-1]
        assert (line.check, line.what, line.ok) == ("certainty", "latent0", True)
        assert line.observed < 0.1
        assert not diagnose(network, X)


class TestEstimator:
    def test_the_table(self):
        data = make_gaussian_bn(5, n_samples=300, random_state=0)
        model = learn(data.X)
        checks = model.diagnose(data.X)
        assert list(checks.columns) == COLUMNS
        assert checks.ok.dtype == bool
        line = checks[checks.check == "likelihood"].iloc[0]
        assert line.observed == pytest.approx(model.score(data.X))

    def test_likelihoods_are_those_of_bent_columns(self):
        X = np.exp(make_gaussian_bn(3, n_samples=300, random_state=0).X / 3)
        model = IdealParentGaussianBN(margins="smooth").fit(X)
        line = model.diagnose(X).iloc[0]
        assert line.observed == pytest.approx(model.score(X))

    @pytest.mark.parametrize("n_rows", [1, 2, 5, 30])
    def test_poor_tables(self, n_rows):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows, 4))
        X[:, 1], X[:, 2] = 3.0, X[:, 0]
        X[:, 3] = np.nan
        checks = learn(X).diagnose(X)
        assert not checks[["observed", "expected"]].isna().any().any()
        assert not failing(checks)

    @pytest.mark.parametrize("offset", [0.0, 1e5])
    def test_rounding_is_not_tested(self, offset):
        """An exact copy, and a sum of columns, in other units."""
        rng = np.random.default_rng(0)
        X = offset + rng.normal(size=(300, 2))
        X = np.column_stack([X, X[:, 0] * 2.2, X.sum(axis=1) / 3.0])
        weights = np.zeros((4, 4))
        weights[0, 2], weights[:2, 3] = 2.2, 1.0 / 3.0
        start, noise = [offset] * 2 + [0.0] * 2, [1.0] * 2 + [1e-14] * 2
        network = GaussianNetwork(weights != 0, weights, start, noise)
        assert diagnose(network, X) == {"near-duplicates"}
        residuals = noise_of(network, X)
        np.testing.assert_array_equal(residuals.any(axis=0), [True, True, False, False])

    def test_networks_without_residuals_have_pairs_of_sizes(self):
        """Noise that a column multiplies, beside a link that is not linear."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(800, 3))
        X[:, 1] *= X[:, 0]
        checks = learn(X, link="sigmoid").diagnose(X)
        pairs = checks[(checks.check == "pair") & ~checks.ok]
        assert "size of x0, size of x1" in set(pairs.what)
        assert not {"curvature", "changing spread"} & set(checks.check)
