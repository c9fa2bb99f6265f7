"""Hidden classes of rows: inference in them, and when a fit finds them."""

import warnings

import numpy as np
import pytest
from gaussian_strategies import free_options
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

from sklearn_latent import IdealParentGaussianBN
from sklearn_latent._core.graphs import equivalence_class
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import ModelMisfitWarning, PoorDataWarning
from sklearn_latent.gaussian import GaussianNetwork, MixtureMargin, NormalMargin
from sklearn_latent.gaussian import _fit as fit_module
from sklearn_latent.gaussian._class_em import (
    ClassEvaluator,
    ClassSearch,
    _dependence,
    class_network,
    looks_mixed,
)
from sklearn_latent.gaussian._linear_scores import LinearEvaluator
from sklearn_latent.gaussian._rows import Rows
from sklearn_latent.gaussian._statistics import GaussianStatistics

BENT = MixtureMargin([0.5, 0.5], [-1.0, 2.0], [1.0, 0.5])


def make_network(margins=None, n_latents=0):
    """Two classes of a chain of three nodes."""
    rng = np.random.default_rng(0)
    adjacency = np.zeros((3, 3), dtype=bool)
    adjacency[0, 1] = adjacency[2, 1] = True
    weights = rng.normal(size=(2, 3, 3)) * adjacency
    intercept, noise = rng.normal(size=(2, 3)), rng.uniform(0.5, 2.0, size=(2, 3))
    return GaussianNetwork(
        adjacency,
        weights,
        intercept,
        noise,
        class_weight=[0.7, 0.3],
        margins=margins,
        n_latents=n_latents,
    )


@pytest.fixture(scope="module")
def groups():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(100, 3)) + 5.0 * k for k in (0, 1, 3)])


# Inference.


def test_density_is_that_of_a_mixture():
    network = make_network()
    X = network.sample(20, random_state=0)[0]
    X[:5, 0] = np.nan
    X[3, 1] = np.nan
    moments = [own.joint() for own in network.classes]
    for row, found in zip(X, network.log_likelihood(X), strict=True):
        seen = ~np.isnan(row)
        densities = [
            multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
            for mean, covariance in moments
        ]
        density = network.class_weight @ [own.pdf(row[seen]) for own in densities]
        assert_allclose(found, np.log(density))


@pytest.mark.parametrize("margins", [None, [BENT, NormalMargin(), BENT]])
def test_inference_agrees_with_samples(margins):
    network = make_network(margins)
    X, _ = network.sample(200_000, random_state=0)
    near = np.abs(X[:, 1:] - X[7, 1:]).max(axis=1) < 0.15
    gap = X[[7]].copy()
    gap[0, 0] = np.nan
    expected = X[near, 0].mean()
    error = 4.0 * X[near, 0].std() / np.sqrt(near.sum()) + 0.05
    assert abs(network.expectation(gap)[0, 0] - expected) < error
    assert_allclose(network.leave_one_out(X[[7]])[0, 0], network.expectation(gap)[0, 0])
    assert_allclose(network.leave_one_out(gap)[0, 0], network.expectation(gap)[0, 0])


def test_classes_of_rows():
    network = make_network()
    X = network.sample(100_000, random_state=1)[0]
    posterior = network.class_posterior(X)
    assert_allclose(posterior.sum(axis=1), 1.0)
    assert_allclose(posterior.mean(axis=0), network.class_weight, atol=0.01)
    single = GaussianNetwork(*make_gaussian_arrays())
    assert_allclose(single.class_posterior(X[:3]), np.ones((3, 1)))


def make_gaussian_arrays():
    own = make_network().classes[0]
    return own.adjacency, own.weights, own.intercept, own.noise_variance


def test_latents_in_classes():
    network = make_network(n_latents=1)
    X, Z = network.sample(100_000, random_state=0)
    error = Z - network.posterior(X)
    assert abs(error.mean()) < 0.02
    assert abs(np.corrcoef(error[:, 0], X[:, 0])[0, 1]) < 0.02


def test_one_class_is_no_class():
    adjacency, *own = make_gaussian_arrays()
    plain = GaussianNetwork(adjacency, *own)
    one = GaussianNetwork(adjacency, *([array] for array in own), class_weight=[1.0])
    X = plain.sample(10, random_state=0)[0]
    assert_allclose(one.log_likelihood(X), plain.log_likelihood(X))
    assert one.n_parameters == plain.n_parameters


def test_equal_classes_are_one():
    adjacency, *own = make_gaussian_arrays()
    plain = GaussianNetwork(adjacency, *own)
    two = GaussianNetwork(
        adjacency, *([array] * 2 for array in own), class_weight=[0.4, 0.6]
    )
    X = plain.sample(10, random_state=0)[0]
    X[0, 0] = np.nan
    assert_allclose(two.log_likelihood(X), plain.log_likelihood(X))
    assert_allclose(two.expectation(X), plain.expectation(X))
    assert_allclose(two.leave_one_out(X), plain.leave_one_out(X))
    assert_allclose(two.weights, plain.weights)
    assert two.n_parameters == 2 * plain.n_parameters + 1


@pytest.mark.parametrize("margins", [None, [BENT, NormalMargin(), BENT]])
def test_persistence(margins):
    network = make_network(margins)
    again = GaussianNetwork.from_json(network.to_json())
    assert again == network
    assert again != make_network([BENT] * 3)
    assert again.with_margins(None) == make_network()
    assert "2 classes" in repr(again)


def test_export():
    network = make_network()
    graph = network.to_networkx()
    assert graph.nodes["class"]["kind"] == "class"
    assert set(graph["class"]) == {"x0", "x1", "x2"}
    assert graph.edges["x0", "x1"]["weight1"] == network.classes[1].weights[0, 1]
    assert len(network.to_frame()) == 5
    named = network.to_networkx(feature_names=["class", "b", "c"])
    assert named.nodes["class_"]["n_classes"] == 2
    with pytest.raises(ValueError, match="needs one class"):
        network.to_pgmpy()
    with pytest.raises(ValueError, match="one class"):
        network.joint()


@pytest.mark.parametrize("weight", [[0.5, 0.6], [1.0], [-0.5, 1.5], [], [[0.5, 0.5]]])
def test_wrong_class_weights(weight):
    network = make_network()
    own = network._parameters
    with pytest.raises(ValueError, match="class_weight"):
        GaussianNetwork(network.adjacency, *own, class_weight=weight)


def test_classes_are_linear():
    network = make_network()
    with pytest.raises(ValueError, match="class_weight must be None"):
        GaussianNetwork(
            network.adjacency,
            *network._parameters,
            class_weight=[0.5, 0.5],
            noise="multiplicative",
        )


# Parts of the search.


def test_one_class_scores_as_a_network():
    moments = GaussianStatistics.of(make_gaussian_bn(5, random_state=0).X)
    both = ClassEvaluator([moments]), LinearEvaluator(moments)
    allowed = np.ones((2, 5), dtype=bool)
    families = [(0, (1, 2)), (3, ())]
    for evaluator in both:
        evaluator.set_costs(2.0, np.arange(6.0))
    first, second = both
    assert_allclose(first.family_score(0, (1, 2)), second.family_score(0, (1, 2)))
    mine, theirs = (
        part.move_scores(families, allowed, ~allowed, [True, False]) for part in both
    )
    for one, other in zip(mine, theirs, strict=True):
        assert_allclose(one, other)


@pytest.mark.parametrize("gaps", [False, True])
def test_densities_of_parameters_are_those_of_the_network(gaps):
    network = make_network()
    X = network.sample(200, random_state=0)[0]
    search = ClassSearch(Rows(X, None), free_options(3))
    moments = search.statistics(network.class_posterior(X), None)
    found = class_network(moments, network.adjacency)
    if gaps:
        X[::3, 1] = np.nan
    own = found._parameters
    full = GaussianNetwork(found.adjacency, *own, class_weight=found.class_weight)
    densities = found._class_log_densities(X)
    assert_allclose(np.logaddexp.reduce(densities, axis=1), full.log_likelihood(X))


# Fits.


def test_planted_classes_are_found(groups):
    model = IdealParentGaussianBN().fit(groups)
    label = model.network_.class_posterior(groups).argmax(axis=1)
    assert model.n_classes_ == 3
    assert adjusted_rand_score(label, np.repeat([0, 1, 2], 100)) > 0.95
    # Within classes columns are independent.
    assert not model.adjacency_.any()
    assert IdealParentGaussianBN(n_classes=1).fit(groups).adjacency_.any()


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_two_classes_of_many_columns(share):
    rng = np.random.default_rng(0)
    label = rng.random(400) > share
    X = rng.normal(size=(400, 30)) + 2.0 * label[:, None]
    model = IdealParentGaussianBN().fit(X)
    assert model.n_classes_ == 2
    found = model.network_.class_posterior(X).argmax(axis=1)
    assert adjusted_rand_score(found, label) > 0.95


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_classes_of_real_tables(load):
    X, y = load(return_X_y=True)
    model = IdealParentGaussianBN().fit(X)
    plain = IdealParentGaussianBN(n_classes=1).fit(X)
    assert model.n_classes_ > 1
    assert model.bic_ < plain.bic_
    label = model.network_.class_posterior(X).argmax(axis=1)
    assert adjusted_rand_score(label, y) > 0.5
    assert_allclose(model.log_likelihood_, model.score_samples(X).sum())


@pytest.mark.parametrize("seed", range(10))
def test_none_in_rows_of_a_network(seed):
    n_features, n_rows = (4, 8, 15)[seed % 3], (100, 400)[seed % 2]
    X = make_gaussian_bn(n_features, n_samples=n_rows, random_state=seed).X
    assert IdealParentGaussianBN().fit(X).n_classes_ == 1


def test_heavy_tails_are_no_classes():
    X = np.random.default_rng(0).standard_t(3, size=(400, 4))
    assert IdealParentGaussianBN().fit(X).n_classes_ == 1


def test_a_sum_of_columns_in_all_rows_but_one_is_told():
    """One class takes the row that breaks the rule, and the others have no noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) + 4.0 * rng.integers(0, 2, size=(400, 1))
    X[1:, 2] = X[1:, 0] + X[1:, 1]
    model = IdealParentGaussianBN()
    with pytest.warns(PoorDataWarning, match="without noise"):
        model.fit(X)
    assert model.n_classes_ > 1


def test_classes_that_overlap_but_describe_rows_much_better():
    """Two lines that cross: rows near the crossing may belong to either."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    X[:, 1] = 0.8 * X[:, 0] * rng.choice([-1, 1], 600) + 0.6 * X[:, 1]
    model = IdealParentGaussianBN().fit(X)
    assert model.n_classes_ > 1
    alone = IdealParentGaussianBN(n_classes=1).fit(X)
    assert model.score(X) > alone.score(X) + 0.15


@pytest.mark.parametrize("factor", [1000.0, -0.3])
def test_units_and_order_do_not_matter(factor):
    X = load_wine().data
    rng = np.random.default_rng(1)
    columns = rng.permutation(13)
    first = IdealParentGaussianBN().fit(X)
    other = X[rng.permutation(len(X))][:, columns] * factor + 5.0
    second = IdealParentGaussianBN().fit(other)
    assert_allclose(
        second.network_.class_weight, first.network_.class_weight, rtol=1e-6
    )
    mine = equivalence_class(first.adjacency_)[np.ix_(columns, columns)]
    assert (equivalence_class(second.adjacency_) == mine).all()
    shift = len(X) * 13 * np.log(abs(factor))
    assert_allclose(second.log_likelihood_ + shift, first.log_likelihood_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:X looks suspicious")
def test_weights_are_copies(groups):
    weighted = IdealParentGaussianBN().fit(groups, sample_weight=np.full(300, 2.0))
    twice = IdealParentGaussianBN().fit(np.vstack([groups, groups]))
    assert weighted.n_classes_ == twice.n_classes_ == 3
    assert_allclose(weighted.network_.intercept, twice.network_.intercept, rtol=1e-6)


def test_batches_are_rows(groups):
    whole = IdealParentGaussianBN().fit(groups)
    parts = IdealParentGaussianBN().fit(iter([groups[:120], groups[120:]]))
    assert parts.n_classes_ == 3
    assert_allclose(parts.network_.intercept, whole.network_.intercept, rtol=1e-6)
    with pytest.raises(ValueError, match="classes"):
        whole.partial_fit(groups)


def test_gaps(groups):
    X = groups.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = IdealParentGaussianBN().fit(X)
    assert model.n_classes_ == 3
    assert model.is_exact_
    missing = np.isnan(X)
    error = (model.impute(X) - groups)[missing]
    plain = IdealParentGaussianBN(n_classes=1).fit(X)
    assert error.std() < (plain.impute(X) - groups)[missing].std()


def test_many_rows_are_fitted_after_some(monkeypatch, groups):
    monkeypatch.setattr("sklearn_latent.gaussian._groups.MOST_ROWS", 100)
    model = IdealParentGaussianBN().fit(groups)
    assert model.n_classes_ == 3
    assert_allclose(model.network_.class_weight, 1 / 3, atol=0.01)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_given_number(groups, n_classes):
    model = IdealParentGaussianBN(n_classes=n_classes, margins="normal").fit(groups)
    assert model.n_classes_ == n_classes
    assert (np.diff(model.network_.class_weight) <= 0.0).all()
    assert model.edge_confidence(groups, 3).shape == (3, 3)


@pytest.mark.filterwarnings("ignore:2 of 2 features are constant")
@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_more_classes_than_rows(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    model = IdealParentGaussianBN(n_classes=5).fit(X)
    assert model.n_classes_ <= n_rows
    assert np.isfinite(model.score_samples(X)).all()


def test_hard_columns_with_a_given_number(groups):
    X = np.column_stack([groups, groups[:, 0], np.ones(300)])
    with (
        pytest.warns(PoorDataWarning, match="1 of 5 features are constant"),
        pytest.warns(PoorDataWarning, match="1 of 5 features are fitted without noise"),
    ):
        model = IdealParentGaussianBN(n_classes=3).fit(X)
    assert np.isfinite(model.score(X))


@pytest.mark.filterwarnings("ignore:sample_weight holds whole numbers")
def test_whether_classes_are_sought(groups):
    def found(X, weights=None, **parameters):
        model = IdealParentGaussianBN(**parameters).fit(X, sample_weight=weights)
        return model.n_classes_ > 1

    assert not found(groups[::10])
    assert not found(groups, np.arange(1.0, 301.0))
    with pytest.warns(PoorDataWarning, match="constant"):
        assert found(np.column_stack([groups, np.ones(300)]))
    assert not found(groups, margins="normal")
    assert not found(groups, margins="smooth")
    assert not found(groups, search="greedy")
    # No latent is better than edges, and classes are better than these.
    assert found(groups, max_latents=1)
    criteria = [IdealParentGaussianBN(max_latents=n).fit(groups).bic_ for n in (0, 1)]
    assert_allclose(*criteria)
    with pytest.warns(ModelMisfitWarning, match="mixture"):
        assert not found(groups, max_latents=1, bipartite=True)


def test_two_peaks_that_margins_hide():
    """Margins make normal scores of both columns; their errors look normal as well."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2)) + 4.0 * (rng.uniform(size=250) < 0.4)[:, None]
    one = IdealParentGaussianBN(n_classes=1, margins="smooth").fit(X)
    two = IdealParentGaussianBN().fit(X)
    assert two.n_classes_ == 2 and two.bic_ < one.bic_ - 100.0


def test_squares_of_errors_that_depend_on_others():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(500, 4))
    assert abs(_dependence(errors)) < 3.0
    assert _dependence(errors[:10]) == _dependence(errors[:, :1]) == 0.0
    curved = errors + 0.5 * np.roll(errors, 1, axis=1) ** 2
    spread = errors * np.exp(0.3 * np.roll(errors, 1, axis=1))
    assert min(_dependence(curved), _dependence(spread)) > 10.0


@pytest.mark.parametrize("seed", range(5))
def test_gaps_do_not_look_like_classes(seed, groups):
    """Distances of what is known are chi-squared, whatever is missing."""
    rng = np.random.default_rng(seed)
    data = make_gaussian_bn(12, n_samples=600, random_state=seed)
    for X, mixed in ((data.X, False), (groups, True)):
        fitted = IdealParentGaussianBN(n_classes=1, margins="normal").fit(X)
        gaps = np.where(rng.uniform(size=X.shape) < 0.3, np.nan, X)
        assert looks_mixed(fitted.network_, Rows(gaps, None)) == mixed


def test_classes_do_not_stand_for_edges():
    X = make_gaussian_bn(6, n_samples=500, random_state=0).X
    assert IdealParentGaussianBN(max_parents=0).fit(X).n_classes_ == 1


@pytest.mark.parametrize("n_classes", ["auto", 3])
def test_columns_without_values(groups, n_classes):
    X = np.insert(groups, 1, np.nan, axis=1)
    with pytest.warns(PoorDataWarning, match="missing in all rows"):
        model = IdealParentGaussianBN(n_classes=n_classes).fit(X)
    assert model.n_classes_ == 3
    assert not model.adjacency_[1].any()
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("n_classes", ["auto", 2])
def test_no_values_at_all(n_classes):
    X = np.full((50, 3), np.nan)
    with pytest.warns(PoorDataWarning, match="missing in all rows"):
        model = IdealParentGaussianBN(n_classes=n_classes).fit(X)
    assert model.n_classes_ == 1
    assert model.score(X) == 0.0


def test_constraints_hold(groups):
    X = groups @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    model = IdealParentGaussianBN(required=[(2, 0)], forbidden=[(0, 1), (1, 0)]).fit(X)
    assert model.n_classes_ > 1
    assert model.adjacency_[2, 0]
    assert not model.adjacency_[[0, 1], [1, 0]].any()


@pytest.mark.parametrize("n_classes", [0, -1, 1.5, "two", None, True])
def test_wrong_numbers(groups, n_classes):
    with pytest.raises((ValueError, TypeError), match="n_classes"):
        IdealParentGaussianBN(n_classes=n_classes).fit(groups)


@pytest.mark.parametrize("parameters", [{"max_latents": 1}, {"link": "sigmoid"}])
def test_no_classes_of_other_networks(groups, parameters):
    with pytest.raises(ValueError, match="n_classes must be 1"):
        IdealParentGaussianBN(n_classes=2, **parameters).fit(groups)


class TestGroupsBesideLatents:
    """Latents leave no room for classes, so that a fit says what it misses."""

    def test_groups_are_told(self):
        rng = np.random.default_rng(0)
        X = np.vstack([rng.normal(size=(100, 3)) + 5.0 * k for k in (0, 1, 3)])
        with pytest.warns(ModelMisfitWarning, match="mixture of 3 normal"):
            IdealParentGaussianBN(max_latents=1, bipartite=True).fit(X)

    def test_classes_that_are_better_are_told_with_both_criteria(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = np.vstack([rng.normal(size=(100, 5)) + 5.0 * k for k in (0, 1, 3)])
        monkeypatch.setattr(fit_module, "warn_groups", lambda *_: False)
        model = IdealParentGaussianBN(max_latents=1)
        plain = IdealParentGaussianBN().fit(X)
        with pytest.warns(ModelMisfitWarning, match=rf"BIC is {plain.bic_:.8g}.* 3 cl"):
            model.fit(X)
        assert model.n_latents_ == 1 and plain.n_classes_ == 3

    @pytest.mark.parametrize("seed", range(4))
    def test_no_word_without_groups(self, seed):
        X = make_gaussian_bn(
            6, n_latents=1, bipartite=True, n_samples=300, random_state=seed
        ).X
        with warnings.catch_warnings():
            warnings.simplefilter("error", ModelMisfitWarning)
            IdealParentGaussianBN(max_latents=1).fit(X)


@pytest.mark.parametrize("offset", [1e3, 1e4, 1e5, 1e7])
def test_how_far_groups_are_apart_does_not_matter(offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    X[:, 1] += X[:, 0]
    second = np.arange(400)[:, np.newaxis] >= 200
    near = IdealParentGaussianBN().fit(X + 10.0 * second)
    far = IdealParentGaussianBN().fit(X + offset * second)
    assert near.n_classes_ == far.n_classes_ == 2
    assert_array_equal(near.adjacency_, far.adjacency_)
    assert_allclose(near.log_likelihood_, far.log_likelihood_, rtol=1e-4)
