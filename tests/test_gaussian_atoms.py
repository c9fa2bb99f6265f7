"""Values that are repeated, columns that are constant, and rows that are far away."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from sklearn_latent import IdealParentGaussianBN, compare
from sklearn_latent.baselines import IndependentFeatures
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import ModelMisfitWarning, PoorDataWarning
from sklearn_latent.gaussian import GaussianNetwork, MixtureMargin, NormalMargin
from sklearn_latent.gaussian._atom_margins import AtomMargin, ConstantMargin
from sklearn_latent.gaussian._background import Background
from sklearn_latent.gaussian._margin_fit import find_atoms

REST = MixtureMargin([0.7, 0.3], [1.0, 4.0], [1.0, 0.5])
MARGINS = {
    "low": AtomMargin([-6.0], [0.4], REST),
    "inside": AtomMargin([0.0], [0.6], REST),
    "several": AtomMargin([0.0, 2.5, 9.0], [0.3, 0.1, 0.2], REST),
}


def rain(n_rows, seed, share=0.4):
    """Three columns that go together; the first is zero in many rows."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, 3))
    Z[:, 1:] += 0.8 * Z[:, :1]
    Z[:, 0] = np.maximum(np.exp(Z[:, 0]) - np.exp(norm.ppf(share)), 0.0)
    return Z


def pair(margins=None, background=None):
    """One edge."""
    weights = np.array([[0.0, 0.8], [0.0, 0.0]])
    return GaussianNetwork(
        weights != 0,
        weights,
        [0.0, 0.0],
        [1.0, 0.36],
        margins=margins,
        background=background,
    )


class TestMargin:
    @pytest.mark.parametrize("margin", MARGINS.values(), ids=MARGINS)
    def test_distribution_is_that_of_atoms_and_rest(self, margin):
        drawn = margin.values(np.random.default_rng(0).normal(size=200_000))
        for atom, share in zip(margin.atoms, margin.share, strict=True):
            assert abs((drawn == atom).mean() - share) < 0.005
        x = np.linspace(-3.0, 6.0, 10)
        rest = 1.0 - margin.share.sum()
        below = margin.share @ (margin.atoms[:, None] <= x)
        expected = below + rest * norm.cdf(REST.scores(x))
        assert_allclose([(drawn <= end).mean() for end in x], expected, atol=0.005)
        # Of atoms, scores are means; with what varies behind them all have variance 1.
        z = margin.scores(drawn)
        assert abs(z.mean()) < 0.01
        assert_allclose(z.var() + margin.hidden_variance, 1.0, atol=0.01)

    @pytest.mark.parametrize("margin", MARGINS.values(), ids=MARGINS)
    def test_values_are_the_inverse_of_scores(self, margin):
        # Farther out, between atoms, scores have no digits left to tell values apart.
        x = np.append(np.linspace(-4.0, 6.5, 50), margin.atoms)
        z, log_slope = margin.scored(x)
        assert_allclose(margin.values(z), x, atol=1e-6)
        assert_allclose(margin._quick_values(z), x, atol=1e-2)
        assert_allclose(margin.settled(z), z)
        part = slice(5, 40)
        slope = (margin.scores(x[part] + 1e-5) - margin.scores(x[part] - 1e-5)) / 2e-5
        assert_allclose(np.exp(log_slope[part]), slope, rtol=1e-3)

    @pytest.mark.parametrize(
        ("atoms", "share", "message"),
        [
            ([0.0, 1.0], [0.5], "one value per atom"),
            ([1.0, 0.0], [0.1, 0.1], "increasing"),
            ([0.0], [1.0], "a sum below 1"),
            ([0.0], [0.0], "must be positive"),
        ],
    )
    def test_wrong_atoms(self, atoms, share, message):
        with pytest.raises(ValueError, match=message):
            AtomMargin(atoms, share, REST)

    def test_what_is_an_atom(self):
        rng = np.random.default_rng(0)
        x = rng.exponential(size=500)
        ones = np.ones(500)
        assert not len(find_atoms(x, ones)[0])
        # Rounding repeats values, and their neighbours, too.
        assert not len(find_atoms(x.round(1), ones)[0])
        assert not len(find_atoms(rng.geometric(0.5, 500).astype(float), ones)[0])
        x[:100], x[100:150] = 0.0, 7.0
        values, share = find_atoms(x, ones)
        assert_array_equal(values, [0.0, 7.0])
        assert_allclose(share, [0.2, 0.1])
        half = find_atoms(np.append(x, np.nan)[::2], np.full(251, 2.0))
        assert_array_equal(half[0], [0.0, 7.0])


class TestDensity:
    """Sums over atoms and integrals over the rest are 1."""

    X = np.linspace(-40.0, 60.0, 40_001)

    def mass(self, network, column, row):
        """Of one column, given the other values of a row."""
        rows = np.tile(row, (len(self.X), 1))
        rows[:, column] = self.X + 1e-7
        step = self.X[1] - self.X[0]
        total = np.exp(network.log_likelihood(rows)).sum() * step
        margin = network.margins[column]
        atoms = np.tile(row, (len(margin.atoms), 1))
        atoms[:, column] = margin.atoms
        return total + np.exp(network.log_likelihood(atoms)).sum()

    @pytest.mark.parametrize("margin", MARGINS.values(), ids=MARGINS)
    def test_in_one_dimension(self, margin):
        network = pair([margin, NormalMargin()])
        assert_allclose(self.mass(network, 0, [[np.nan, np.nan]]), 1.0, atol=1e-4)
        far = network._with(background=Background(0.01, [0.0, 0.0], [0.1, 1.0]))
        assert_allclose(self.mass(far, 0, [[np.nan, np.nan]]), 1.0, atol=1e-4)

    def test_in_two_dimensions(self):
        """Whatever the parent, also an atom, the child has a density given it."""
        network = pair([MARGINS["inside"], MARGINS["several"]])
        for parent in (0.0, 1.3, 4.0):
            alone = network.log_likelihood([[parent, np.nan]])
            found = self.mass(network, 1, [[parent, np.nan]])
            assert_allclose(found, np.exp(alone[0]), rtol=1e-3)

    def test_classes_and_latents(self):
        one = pair()
        own = [np.stack([part, part]) for part in one._parameters]
        own[1][1] += 1.0
        both = GaussianNetwork(
            one.adjacency,
            *own,
            class_weight=[0.3, 0.7],
            margins=[MARGINS["low"], NormalMargin()],
        )
        assert_allclose(self.mass(both, 0, [[np.nan, np.nan]]), 1.0, atol=1e-4)
        weights = np.zeros((3, 3))
        weights[2, :2] = 0.7
        latent = GaussianNetwork(
            weights != 0,
            weights,
            [0.0] * 3,
            [0.51, 0.51, 1.0],
            n_latents=1,
            margins=[MARGINS["low"], MARGINS["several"]],
        )
        for parent in (-6.0, 1.3):
            alone = latent.log_likelihood([[parent, np.nan]])
            found = self.mass(latent, 1, [[parent, np.nan]])
            assert_allclose(found, np.exp(alone[0]), rtol=1e-3)

    def test_storage(self):
        margins = [MARGINS["several"], ConstantMargin(2.0)]
        network = pair(margins, Background(0.1, [0.0, 1.0], [1.0, 2.0]))
        for copy in (
            GaussianNetwork.from_json(network.to_json()),
            pickle.loads(pickle.dumps(network)),
        ):
            assert copy == network != network.with_margins(margins)
        assert "background" not in pair().to_dict()["fields"]
        for wrong in (
            (0.0, [0.0], [1.0]),
            (0.1, [0.0], [0.0]),
            (0.1, [0.0], [1.0] * 2),
        ):
            with pytest.raises(ValueError, match="must"):
                Background(*wrong)
        with pytest.raises(ValueError, match="one value per feature, 2, got 1"):
            pair(background=Background(0.1, [0.0], [1.0]))


class TestColumnsWithAtoms:
    @pytest.mark.parametrize("parameters", [{}, {"max_latents": 1}])
    def test_samples_have_their_share(self, parameters):
        X = rain(1000, 0)
        model = IdealParentGaussianBN(**parameters).fit(X)
        drawn = model.sample(20_000, random_state=0)[0]
        assert abs((drawn[:, 0] == 0.0).mean() - (X[:, 0] == 0.0).mean()) < 0.03
        dry = [Y[Y[:, 0] == 0.0, 1].mean() for Y in (X, drawn)]
        assert abs(dry[0] - dry[1]) < 0.15
        assert_allclose(model.log_likelihood_, model.score_samples(X).sum())
        diagnosed = model.diagnose(X)
        assert diagnosed.ok[
            diagnosed.check.isin(["mean", "spread", "likelihood"])
        ].all()

    def test_held_out_rows(self):
        """No spikes: less than the true distribution, more than columns alone."""
        train, test = rain(600, 0), rain(2000, 1)
        model = IdealParentGaussianBN().fit(train)
        alone = IdealParentGaussianBN(max_parents=0, n_classes=1).fit(train)
        assert model.score(test) > alone.score(test) + 0.3
        dry = test[:, 0] == 0.0
        first = np.column_stack([test[:, 0], np.full((len(test), 2), np.nan)])
        shares = np.exp(model.score_samples(first[dry]))
        assert_allclose(shares, (train[:, 0] == 0.0).mean(), atol=0.03)

    def test_densities_of_others_do_not_compare(self):
        with pytest.warns(ModelMisfitWarning, match="BN of 2; .*Features of 3"):
            compare([IdealParentGaussianBN(), IndependentFeatures()], rain(300, 0))

    def test_gaps_and_batches(self):
        X = rain(500, 0)
        whole = IdealParentGaussianBN().fit(X)
        parts = IdealParentGaussianBN().fit(iter([X[:200], X[200:]]))
        assert_allclose(parts.bic_, whole.bic_)
        X[::7, 1] = np.nan
        X[3::7, 0] = np.nan
        gaps = IdealParentGaussianBN().fit(X)
        assert_allclose(gaps.bic_, gaps.bic(X))
        assert not np.isnan(gaps.impute(X)).any()

    def test_units_do_not_matter(self):
        X = rain(500, 0)
        one = IdealParentGaussianBN().fit(X)
        other = IdealParentGaussianBN().fit(X * [-2.0, 3.0, 1.0])
        assert_array_equal(one.adjacency_, other.adjacency_)
        wet = (X[:, 0] != 0.0) * np.log(2.0) + np.log(3.0)
        gap = one.score_samples(X) - other.score_samples(X * [-2.0, 3.0, 1.0])
        assert_allclose(gap, wet, atol=1e-4)


class TestConstantColumns:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(
        "parameters",
        [{}, {"max_latents": 1}, {"search": "greedy"}],
    )
    def test_they_change_nothing(self, parameters, seed):
        X = make_gaussian_bn(8, n_latents=1, n_samples=200, random_state=seed).X
        Y = np.insert(X, 3, 0.1, axis=1)
        without = IdealParentGaussianBN(**parameters).fit(X)
        model = IdealParentGaussianBN(**parameters)
        with pytest.warns(PoorDataWarning, match="1 of 9 .* constant .*: x3"):
            model.fit(Y)
        others = np.delete(np.arange(model.network_.n_nodes), 3)
        found = model.adjacency_[np.ix_(others, others)]
        assert_array_equal(found, without.adjacency_)
        assert not model.adjacency_[3].any() and not model.adjacency_[:, 3].any()
        # Of far rows a constant may have another value, by their share once more.
        assert_allclose(model.score_samples(Y), without.score_samples(X), rtol=1e-4)
        assert_allclose(model.bic_, without.bic_, rtol=1e-8)
        assert (model.sample(20, random_state=0)[0][:, 3] == 0.1).all()
        Y[:, 3] = np.nan
        assert (model.impute(Y)[:, 3] == 0.1).all()
        again = GaussianNetwork.from_json(model.network_.to_json())
        assert again == model.network_

    def test_another_value_is_unlikely_but_possible(self):
        X = np.insert(make_gaussian_bn(4, n_samples=200, random_state=0).X, 1, 5.0, 1)
        with pytest.warns(PoorDataWarning, match="constant"):
            model = IdealParentGaussianBN().fit(X)
        with pytest.warns(PoorDataWarning, match="constant"):
            published = IdealParentGaussianBN(margins="normal").fit(X)
        before = model.score(X)
        X[:, 1] += 1.0
        assert before - 60.0 < model.score(X) < before - 8.0
        assert (published.score_samples(X) == -np.inf).all()


class TestFarRows:
    def test_one_value_cannot_outweigh_a_table(self):
        data = make_gaussian_bn(4, n_samples=400, random_state=0)
        model = IdealParentGaussianBN().fit(data.X[:300])
        published = IdealParentGaussianBN(margins="normal").fit(data.X[:300])
        test = data.X[300:]
        # Little is lost where no row is far.
        assert model.score(test) > published.score(test) - 0.01
        test[0, 0] += 1e9
        rows = model.score_samples(test)
        assert (np.median(rows) - rows).max() < 50.0 * 4
        assert published.score(test) < -1e12

    def test_the_share_is_estimated(self):
        X = make_gaussian_bn(4, n_samples=500, random_state=0).X
        few = IdealParentGaussianBN(n_classes=1).fit(X)
        assert 1.0 / 503 < few.network_.background.share < 3.0 / 501
        far = X.copy()
        far[:50] = 30.0 * np.random.default_rng(0).standard_cauchy((50, 4))
        many = IdealParentGaussianBN(n_classes=1).fit(far)
        drawn = many.sample(10_000, random_state=0)[0]
        share = many.network_.background.share
        assert 0.02 < share < 0.12
        away = np.abs(drawn - np.median(drawn, axis=0)).max(axis=1)
        assert (away > 300.0).any()
        assert many.score(drawn) > -60.0

    def test_gaps_are_integrated_out(self):
        network = pair(background=Background(0.3, [0.0, 1.0], [1.0, 2.0]))
        grid = np.linspace(-3000.0, 3000.0, 600_001)
        rows = np.column_stack([np.full(len(grid), 0.5), grid])
        area = np.exp(network.log_likelihood(rows)).sum() * (grid[1] - grid[0])
        alone = network.log_likelihood([[0.5, np.nan]])
        assert_allclose(np.log(area), alone[0], atol=1e-3)
        assert network.log_likelihood([[np.nan, np.nan]])[0] == pytest.approx(0.0)
