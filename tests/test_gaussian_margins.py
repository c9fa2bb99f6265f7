"""Margins: densities, scores, and networks of scores in the units of the columns."""

import pickle

import numpy as np
import pytest
from gaussian_strategies import random_linear_network
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from scipy.stats import norm
from sklearn.base import clone
from strategies import seeds

from sklearn_latent._tables.blocks import LocalBlocks
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import LatentWarning, PoorDataWarning
from sklearn_latent.gaussian import (
    GaussianNetwork,
    IdealParentGaussianBN,
    Margin,
    MixtureMargin,
    NormalMargin,
)
from sklearn_latent.gaussian import _rows as sample_module
from sklearn_latent.gaussian._margin_fit import (
    choose_bent,
    few_values,
    fit_mixtures,
    rank_statistics,
)
from sklearn_latent.gaussian._rows import Rows, RowSums
from sklearn_latent.gaussian._table_margins import to_scores, to_values


class Log(Margin):
    """Logarithms."""

    name = "log"

    def scores(self, values):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(values)

    def log_slopes(self, values):
        with np.errstate(invalid="ignore", divide="ignore"):
            return -np.log(values)

    def values(self, scores):
        return np.exp(scores)


@st.composite
def mixtures(draw):
    """Margins with one to four components."""
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(1, 4))
    weight = rng.uniform(0.1, 1.0, n)
    shift = draw(st.sampled_from([0.0, 100.0]))
    return MixtureMargin(
        weight / weight.sum(), shift + 3 * rng.normal(size=n), rng.uniform(0.2, 2.0, n)
    )


@pytest.fixture(scope="module")
def bent():
    """Rows of a network whose columns were bent, and the network."""
    network = random_linear_network(5, 3)
    X = network.sample(800, 0)[0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:, 0] = np.exp(X[:, 0])
    X[:, 1] = X[:, 1] ** 3
    X[:, 2] = 1.0 / (1.0 + np.exp(-2.0 * X[:, 2]))
    return X, network


@pytest.fixture(scope="module")
def model(bent):
    return IdealParentGaussianBN(margins="smooth").fit(bent[0])


@settings(deadline=None)
@given(mixtures(), st.floats(-30.0, 30.0))
def test_scores_are_normal_quantiles(margin, x):
    values = margin.mean[0] + margin.deviation[0] * np.array([x])
    away = (values[:, None] - margin.mean) / margin.deviation
    below, above = norm.cdf(away) @ margin.weight, norm.sf(away) @ margin.weight
    expected = np.where(below < above, norm.ppf(below), norm.isf(above))
    assert_allclose(margin.scores(values), expected, rtol=1e-7, atol=1e-9)
    # Density by the score and by the mixture are the same.
    density = norm.logpdf(margin.scores(values)) + margin.log_slopes(values)
    assert_allclose(density, margin.log_density(values), rtol=1e-8, atol=1e-8)


@settings(deadline=None)
@given(mixtures(), st.lists(st.floats(-9.0, 9.0), min_size=1, max_size=9))
@example(
    MixtureMargin([0.3, 0.3, 0.4], [3.0, 4.0, 3.5], [0.5, 1.0, 2.0]), [0.0, -2e-16]
)
def test_values_are_the_inverse_of_scores(margin, scores):
    scores = np.sort(scores)
    values = margin.values(scores)
    assert (np.diff(values) >= 0).all()
    assert_allclose(margin.scores(values), scores, atol=1e-8)


@settings(deadline=None)
@given(mixtures())
def test_slopes_are_derivatives_and_tails_are_linear(margin):
    x = np.linspace(margin.mean.min() - 3, margin.mean.max() + 3, 50)
    step = 1e-5
    slope = (margin.scores(x + step) - margin.scores(x - step)) / (2 * step)
    assert_allclose(np.exp(margin.log_slopes(x)), slope, rtol=1e-3, atol=1e-6)
    far = np.array([-1e100, -1e20, 1e20, 1e100])
    widest = margin.deviation.max()
    assert_allclose(margin.scores(far), far / widest, rtol=1e-6)
    assert_allclose(margin.log_slopes(far), -np.log(widest), atol=1e-6)


def test_expectations_are_means_of_values():
    margin = MixtureMargin([0.4, 0.6], [-1.0, 3.0], [0.5, 1.0])
    rng = np.random.default_rng(0)
    for mean, deviation in ((0.0, 1.0), (1.5, 0.3), (-2.0, 0.0)):
        draws = margin.values(mean + deviation * rng.normal(size=20_000))
        expected = margin.expectation(np.array([mean]), np.array([deviation**2]))
        assert_allclose(expected, draws.mean(), atol=0.05)
    # Of the whole column it is the mean of the mixture.
    whole = margin.expectation(np.zeros(1), np.ones(1))
    assert_allclose(whole, margin.weight @ margin.mean, atol=0.01)


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from([1.0, 1e-5, 1e6]), st.sampled_from([0.0, 1e4]))
def test_estimates_are_equivariant(seed, scale, shift):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.gamma(2.0, size=300), rng.normal(size=300), rng.integers(0, 4, 300)]
    )
    weights = rng.integers(1, 4, 300)
    margins = fit_mixtures(X, weights)
    assert isinstance(margins[1], NormalMargin) or margins[1].n_parameters > 0
    Z, log_slope = to_scores(margins, X)
    for sign in (1.0, -1.0):
        Y = sign * scale * (X + shift)
        others = fit_mixtures(Y.repeat(weights, axis=0)[rng.permutation(weights.sum())])
        assert [m.name for m in others] == [m.name for m in margins]
        again, slopes = to_scores(others, Y)
        smooth = [m.name == "smooth" for m in margins]
        assert_allclose(sign * again[:, smooth], Z[:, smooth], atol=1e-5)
        assert_allclose(slopes + sum(smooth) * np.log(scale), log_slope, atol=1e-3)


def test_scores_of_bent_columns_are_nearly_normal():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(2000, 4))
    X = np.column_stack([np.exp(Z[:, 0]), Z[:, 1] ** 3, norm.cdf(Z[:, 2]), Z[:, 3]])
    margins = fit_mixtures(X)
    assert [margin.name for margin in margins] == ["smooth"] * 3 + ["normal"]
    scores = to_scores(margins, X)[0]
    for column in range(4):
        assert np.corrcoef(scores[:, column], Z[:, column])[0, 1] > 0.99
    assert_allclose(to_values(margins, scores), X, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "column",
    [
        np.full(50, 3.0),
        np.r_[np.zeros(200), np.random.default_rng(0).exponential(size=200)],
        np.repeat([0.0, 1.0], 100),
        np.random.default_rng(0).standard_cauchy(500),
        np.r_[np.random.default_rng(0).normal(size=300), 1e6],
        np.array([1.0, 2.0]),
        np.full(20, np.nan),
        np.r_[np.nan, np.random.default_rng(0).exponential(size=300), np.nan],
    ],
    ids=["constant", "atom", "binary", "cauchy", "outlier", "two rows", "gone", "gaps"],
)
def test_odd_columns_have_bounded_densities(column):
    margin = fit_mixtures(column[:, None])[0]
    seen = column[~np.isnan(column)]
    if isinstance(margin, NormalMargin):
        return
    gaps = np.diff(np.unique(seen))
    assert margin.log_density(seen).max() < np.log(1e3 / gaps[gaps > 0].min())
    # Between and beyond the data the density is not far below the normal one.
    x = np.linspace(seen.min() - seen.std(), seen.max() + seen.std(), 500)
    least = norm.logpdf(x, seen.mean(), seen.std()) - np.log(len(seen) + 1) - 1e-6
    assert (margin.log_density(x) >= least).all()
    assert np.isfinite(margin.scores(x)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.6], [0, 1], [1, 1]), "a sum of 1"),
        (([1.5, -0.5], [0, 1], [1, 1]), "positive numbers"),
        (([1.0], [0, 1], [1]), "one value per component"),
        (([], [], []), "one value per component"),
        (([1.0], [0.0], [0.0]), "deviation must be positive"),
        (([1.0], [np.nan], [1.0]), "mean must be finite"),
        (("a", [0.0], [1.0]), "weight must be an array of numbers"),
    ],
)
def test_wrong_mixtures(arguments, message):
    with pytest.raises(ValueError, match=message):
        MixtureMargin(*arguments)


def test_density_is_that_of_the_columns(model, bent):
    X = bent[0]
    # By hand: the joint normal density of the scores, and the slopes.
    Z, log_slope = to_scores(model.network_.margins, X)
    expected = model.network_.with_margins(None).log_likelihood(Z) + log_slope
    expected = model.network_.background.mixed(expected, X, None)
    assert_allclose(model.score_samples(X), expected)
    assert_allclose(model.bic_, model.bic(X))
    assert_allclose(model.log_likelihood_, expected.sum())
    # It integrates to one over a column whose others are integrated out.
    grid = np.linspace(-40.0, 60.0, 400_001)
    rows = np.full((len(grid), 5), np.nan)
    rows[:, 0] = grid
    density = np.exp(model.score_samples(rows))
    assert_allclose(density.sum() * (grid[1] - grid[0]), 1.0, atol=1e-3)


def test_likelihood_of_gaps_is_the_integral(model, bent):
    X = bent[0][:1].repeat(200_001, axis=0)
    X[:, 3] = np.linspace(-8.0, 8.0, len(X))
    missing = bent[0][:1].copy()
    missing[0, 3] = np.nan
    area = np.exp(model.score_samples(X)).sum() * (X[1, 3] - X[0, 3])
    assert_allclose(model.score_samples(missing)[0], np.log(area), atol=1e-4)


def test_completed_rows_are_in_the_units_of_the_columns(model, bent):
    X = bent[0][:200].copy()
    gaps = np.random.default_rng(0).random(X.shape) < 0.3
    X[gaps] = np.nan
    completed = model.transform(X)
    assert_array_equal(completed[~gaps], X[~gaps])
    assert_array_equal(completed, model.impute(X))
    # The mean of draws from the conditional distribution of one value.
    row = bent[0][:1].copy()
    row[0, 0] = np.nan
    Z = to_scores(model.network_.margins, row)[0]
    joint = model.network_.joint()
    others = [1, 2, 3, 4]
    gain = np.linalg.solve(joint[1][np.ix_(others, others)], joint[1][others, 0])
    mean = joint[0][0] + (Z[0, others] - joint[0][others]) @ gain
    variance = joint[1][0, 0] - joint[1][0, others] @ gain
    draws = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=40_000)
    values = model.network_.margins[0].values(draws)
    assert_allclose(model.transform(row)[0, 0], values.mean(), rtol=0.03)
    assert_allclose(model.predict_nodes(bent[0][:1])[0, 0], values.mean(), rtol=0.03)


def test_samples_look_like_the_data(model, bent):
    X, Z = model.sample(5000, random_state=0)
    assert Z.shape == (5000, 0)
    for column in range(5):
        quantiles = np.quantile(bent[0][:, column], [0.1, 0.5, 0.9])
        found = np.quantile(X[:, column], [0.1, 0.5, 0.9])
        spread = bent[0][:, column].std()
        assert_allclose(found, quantiles, atol=0.15 * spread)
    assert abs(model.score(X) - model.score(bent[0])) < 0.4


def test_structure_behind_bent_columns():
    data = make_gaussian_bn(12, n_samples=2000, n_parents=1.5, random_state=1)
    plain = IdealParentGaussianBN().fit(data.X)
    assert plain.network_.margins is None
    X = np.exp((data.X - data.X.mean(axis=0)) / data.X.std(axis=0))
    found = IdealParentGaussianBN().fit(X)
    skeleton = data.network.adjacency | data.network.adjacency.T
    wrong = (found.adjacency_ | found.adjacency_.T) != skeleton
    normal = IdealParentGaussianBN(margins="normal").fit(X)
    worse = (normal.adjacency_ | normal.adjacency_.T) != skeleton
    assert wrong.sum() <= 4 < worse.sum()
    assert found.score(X) > normal.score(X) + 1.0


def test_columns_that_are_sums_stay_linear():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(400, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1] + 1e-3 * rng.normal(size=400)])
    model = IdealParentGaussianBN().fit(X)
    margins = [margin.name for margin in model.network_.margins]
    assert margins == ["normal", "normal", "smooth", "normal"]
    assert model.score(X) > IdealParentGaussianBN(margins="smooth").fit(X).score(X)


@pytest.mark.parametrize("n_rows", [5, 12, 30, 500])
def test_normal_columns_are_hardly_ever_bent(n_rows):
    rng = np.random.default_rng(0)
    bent = 0
    for _ in range(20):
        normal = rng.normal(size=(n_rows, 4))
        bent += choose_bent(normal, np.ones(n_rows), fit_mixtures(normal)).sum()
    assert bent <= 2


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_increasing_functions_of_columns_change_no_ranks(seed):
    X = np.random.default_rng(seed).exponential(size=(60, 3)) ** 2
    weights = np.arange(1.0, 61.0)
    margins = (MixtureMargin([1.0], [0.0], [1.0]), Log(), NormalMargin())

    def statistics(X, weights):
        return rank_statistics(
            RowSums.of(Rows(X, weights), sampled=True), margins
        ).moments

    before = statistics(X, weights)
    bent = np.column_stack([np.log(X[:, 0]), X[:, 1], X[:, 2] ** 3])
    assert_allclose(statistics(bent, weights).scatter, before.scatter, atol=1e-9)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    assert_allclose(statistics(repeated, None).scatter, before.scatter, atol=1e-9)
    # Margins that were given keep their scores.
    log = np.average(np.log(X[:, 1]), weights=weights)
    assert_allclose(before.mean[1], log)
    share = (np.cumsum(weights) - 0.5 * weights + 0.125) / (weights.sum() + 0.25)
    ordered = np.column_stack([np.arange(60.0), X[:, 1:]])
    mean = np.average(ndtri(share), weights=weights)
    assert_allclose(statistics(ordered, weights).mean[0], mean, atol=1e-12)


def test_ranks_are_for_tables_with_smooth_margins():
    X = np.random.default_rng(0).exponential(size=(60, 2))
    seen = RowSums.of(Rows(X), sampled=True)
    assert rank_statistics(seen, (Log(), NormalMargin())) is None
    assert rank_statistics(seen, None) is None


def test_ranks_need_all_rows(bent, model, monkeypatch):
    margins = model.network_.margins
    assert rank_statistics(RowSums.of(Rows(bent[0])), margins) is None
    monkeypatch.setattr(sample_module, "MOST_VALUES", 1000)
    assert rank_statistics(RowSums.of(Rows(bent[0]), sampled=True), margins) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_graph_does_not_depend_on_how_columns_are_bent(seed):
    X = make_gaussian_bn(8, n_samples=1000, random_state=seed).X
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = IdealParentGaussianBN(margins="smooth")
    one, two = clone(model).fit(np.exp(X)), clone(model).fit(np.exp(1.5 * X))
    assert all(isinstance(m, MixtureMargin) for m in one.network_.margins)
    assert_array_equal(one.adjacency_, two.adjacency_)


@pytest.mark.parametrize("margins", ["smooth", "auto"])
def test_batches_and_blocks_are_rows(bent, margins, monkeypatch):
    X = bent[0]
    model = IdealParentGaussianBN(margins=margins)
    whole = clone(model).fit(X)
    assert whole.network_.margins is not None
    batches = clone(model)
    for start, part in enumerate(np.split(X, [100, 500])):
        batches.partial_fit(part, update=start == 2)
    half = clone(model).partial_fit(X[:300]).partial_fit(X[300:])
    iterated = clone(model).fit(iter(np.split(X, [30, 301])))
    for other in (batches, half, iterated):
        assert_array_equal(other.adjacency_, whole.adjacency_)
        assert_allclose(other.bic_, whole.bic_, rtol=1e-9)
        assert other.network_.margins == whole.network_.margins
    da = pytest.importorskip("dask.array")
    blocks = da.from_array(X, chunks=(150, 5))
    # Of more rows than are kept, margins are those of a sample, sums those of all.
    monkeypatch.setattr(sample_module, "MOST_VALUES", 2000)
    table, collection = clone(model).fit(X), clone(model).fit(blocks)
    assert table.network_.margins == collection.network_.margins
    assert_allclose(table.bic_, collection.bic_, rtol=1e-9)
    assert_allclose(collection.bic_, collection.bic(X), rtol=1e-9)
    once = clone(model).fit(iter(np.split(X, [30, 301])))
    assert once.network_.margins == table.network_.margins
    assert abs(once.score(X) - table.score(X)) < 0.2


def test_samples_of_rows_add_up(monkeypatch):
    monkeypatch.setattr(sample_module, "MOST_VALUES", 60)
    X = np.random.default_rng(0).normal(size=(100, 3)).round(1)
    whole = _sampled((X, None))
    parts = _sampled((X[40:], None)) + _sampled((X[:40], None))
    assert_array_equal(whole.kept.X, parts.kept.X)
    assert_array_equal(whole.kept.weights, parts.kept.weights)
    assert len(whole.kept.X) == 20 and not whole.keeps_all and whole.weight == 100.0
    assert_allclose(whole.rows.weight, 100.0)
    few = _sampled((X[:10], np.arange(1.0, 11.0)))
    assert few.keeps_all and few.weight == 55.0
    blocks = LocalBlocks([(X[:50], None), (X[50:], None)])
    assert_array_equal(blocks.sum(_sampled).kept.X, whole.kept.X)


def _sampled(block):
    return RowSums.of(Rows.of(*block), sampled=True)


def test_margins_with_gaps_latents_and_links(bent):
    X = bent[0][:300].copy()
    X[::9, 0] = np.nan
    gaps = IdealParentGaussianBN(margins="smooth").fit(X)
    assert gaps.network_.margins[0].name == "smooth"
    assert_allclose(gaps.bic_, gaps.bic(X))
    assert not np.isnan(gaps.transform(X)).any()
    sigmoid = IdealParentGaussianBN(link="sigmoid", margins="smooth").fit(bent[0][:200])
    assert np.isfinite(sigmoid.score(bent[0]))
    assert sigmoid.predict_nodes(bent[0][:5]).shape == (5, 5)
    data = make_gaussian_bn(12, 1, 400, bipartite=True, random_state=0)
    latent = IdealParentGaussianBN(
        max_latents=1, bipartite=True, margins="smooth", output="latents"
    ).fit(np.exp(data.X / data.X.std(axis=0)))
    Y = np.exp(data.X / data.X.std(axis=0))
    assert latent.n_latents_ == 1
    assert latent.transform(Y).shape == (400, 1)
    assert latent.get_feature_names_out().tolist() == ["latent0"]
    assert_array_equal(latent.transform(Y), latent.network_.posterior(Y))
    assert abs(np.corrcoef(latent.transform(Y)[:, 0], data.Z[:, 0])[0, 1]) > 0.9
    assert latent.impute(Y[:5]).shape == (5, 12)


def test_margins_of_ones_own():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(200, 3)))
    everywhere = IdealParentGaussianBN(margins=Log()).fit(X)
    logs = IdealParentGaussianBN(margins="normal").fit(np.log(X))
    expected = logs.score_samples(np.log(X)) - np.log(X).sum(axis=1)
    assert_allclose(everywhere.score_samples(X), expected)
    mixed = IdealParentGaussianBN(margins=[Log(), "normal", "smooth"]).fit(X)
    assert [m.name for m in mixed.network_.margins] == ["log", "normal", "smooth"]
    with pytest.raises(ValueError, match="finite scores"):
        everywhere.score(-X)
    with pytest.raises(ValueError, match="one entry per feature, 3, got 1"):
        IdealParentGaussianBN(margins=[Log()]).fit(X)
    with pytest.raises(ValueError, match="Only normal and smooth margins"):
        everywhere.network_.to_dict()
    # The expectation by quadrature is the log-normal's.
    assert_allclose(
        Log().expectation(np.array([0.3]), np.array([0.25])), np.exp(0.425), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("margins", "noise"),
    [
        ("linear", "additive"),
        (3, "additive"),
        (["auto"] * 3, "additive"),
        ("smooth", "multiplicative"),
        ([Log()] * 3, "multiplicative"),
    ],
)
def test_wrong_margins(margins, noise):
    X = np.exp(np.random.default_rng(0).normal(size=(50, 3)))
    with pytest.raises(ValueError, match="margins must be"):
        IdealParentGaussianBN(margins=margins, noise=noise).fit(X)
    assert IdealParentGaussianBN(noise="multiplicative").fit(X).network_.margins is None


def test_networks_with_margins_are_stored(model, bent):
    network = model.network_
    for copy in (
        GaussianNetwork.from_json(network.to_json()),
        pickle.loads(pickle.dumps(network)),
    ):
        assert copy == network and hash(copy) == hash(network)
        assert_array_equal(
            copy.log_likelihood(bent[0]), network.log_likelihood(bent[0])
        )
    assert network.with_margins(None) != network
    assert "margins" not in network.with_margins(None).to_dict()["fields"]
    extra = network.n_parameters - network.with_margins(None).n_parameters
    assert extra == 1 + sum(margin.n_parameters for margin in network.margins) > 1


@pytest.mark.parametrize("margins", ["x", {}, [1], [None] * 4, [{"format": 1}] * 5])
def test_wrong_stored_margins(model, margins):
    stored = model.network_.to_dict()
    stored["fields"]["margins"] = margins
    with pytest.raises(ValueError, match="must"):
        GaussianNetwork.from_dict(stored)


def test_wrong_margins_of_networks(model):
    arguments = model.network_._arguments()
    for margins, error in (
        ("smooth", TypeError),
        ([1] * 5, TypeError),
        ([NormalMargin()], ValueError),
    ):
        with pytest.raises(error, match="margins must"):
            GaussianNetwork(**(arguments | {"margins": margins}))
    with pytest.raises(ValueError, match="margins must be None"):
        GaussianNetwork(**(arguments | {"noise": "multiplicative"}))
    plain = GaussianNetwork(**(arguments | {"margins": [NormalMargin()] * 5}))
    assert plain.margins is None


def test_exports_say_what_is_lost(model):
    graph = model.to_networkx()
    assert {kind for _, kind in graph.nodes(data="margin")} <= {"smooth", "normal"}
    assert len(model.to_frame()) == model.adjacency_.sum()
    with pytest.warns(LatentWarning, match="pgmpy has no margins"):
        assert model.to_pgmpy().check_model()


def test_columns_with_few_values_are_named():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.poisson(2.0, 300)])
    with pytest.warns(PoorDataWarning, match=r"1 of 2 .* few different values.*: x1\."):
        IdealParentGaussianBN().fit(X)
    assert np.isfinite(IdealParentGaussianBN(margins="normal").fit(X).bic_)
    assert_array_equal(few_values(X), [False, True])
    assert_array_equal(few_values(np.ones((300, 1))), [False])


def test_a_fit_keeps_no_rows(bent):
    model = IdealParentGaussianBN().fit(bent[0])
    assert len(pickle.dumps(model)) < bent[0].nbytes
    # Further rows are scored by the margins that were fitted.
    X = bent[0]
    model.fit(X[:500]).partial_fit(X[500:], update=False)
    margins = model.network_.margins
    model.partial_fit(iter([X[:100], X[100:120]]))
    assert model.network_.margins == margins
    rows = np.vstack([X, X[:120]])
    # Rows that are gone do not say whether they are far, so that this is a bound.
    share = model.network_.background.share
    plain = model.network_._with(background=None).log_likelihood(rows)
    assert_allclose(model.log_likelihood_, (plain + np.log1p(-share)).sum())
    assert model.bic(rows) < model.bic_ and not model.is_exact_
    with pytest.raises(ValueError, match="margins must not become 'normal'"):
        model.set_params(margins="normal").partial_fit(X)


def test_rows_that_were_not_kept(bent):
    model = IdealParentGaussianBN(margins="normal").partial_fit(bent[0])
    with pytest.raises(ValueError, match="margins must stay 'normal'"):
        model.set_params(margins="auto").partial_fit(bent[0])
