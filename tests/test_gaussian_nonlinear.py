"""Fits of many families, and the evaluator that chooses which to fit."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares, minimize
from strategies import seeds
from test_gaussian_links import Softplus, Tanh

from sklearn_latent.gaussian._bent_scores import NonlinearEvaluator
from sklearn_latent.gaussian._families import (
    Curve,
    FamilyFitter,
    Likelihood,
    _damped_step,
    fit_network,
)
from sklearn_latent.gaussian._greedy import greedy_search
from sklearn_latent.gaussian._linear_scores import LinearEvaluator
from sklearn_latent.gaussian._links import Linear, Sigmoid, get_link
from sklearn_latent.gaussian._noise import Additive, Multiplicative, Noise, get_noise
from sklearn_latent.gaussian._rules import Rules
from sklearn_latent.gaussian._statistics import GaussianStatistics

LINKS = [Linear(), Sigmoid(), Tanh(), Softplus()]
SIGMOID_WEIGHTS = np.array([1.5, -1.0])


class Fit(NamedTuple):
    """Parameters of families, in the units of the data."""

    weights: np.ndarray
    theta: np.ndarray
    noise_variance: np.ndarray
    log_likelihood: np.ndarray


def fit_families(
    X, families, *, link="sigmoid", noise="additive", sample_weight=None, tol=1e-6
):
    """Fit families as they are, each a child and its parents."""
    fitter = FamilyFitter(
        X, get_link(link), get_noise(noise), sample_weight, tol=tol, max_iter=100
    )
    children, parents = fitter.pad(families)
    *fitted, log_likelihood = fitter.fit(children, parents)
    return Fit(*fitter.to_units(children, parents, *fitted), log_likelihood)


def sigmoid_table(seed, n=300, noise=0.1):
    """Two parents, a child that saturates, and a column of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 2] = 1.0 + 3.0 / (1.0 + np.exp(-X[:, :2] @ SIGMOID_WEIGHTS))
    X[:, 2] += noise * rng.normal(size=n)
    return X


def numerical_gradient(function, place, step=1e-6):
    steps = step * np.eye(len(place))
    return (
        np.array([(function(place + s) - function(place - s)) / 2 for s in steps])
        / step
    )


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.parametrize("noise", [Additive(), Multiplicative()], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@given(seed=seeds)
def test_gradients_are_finite_differences(link, noise, weighted, seed):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, size=25) if weighted else None
    inputs = rng.normal(size=(3, 2, 25))
    target = rng.uniform(0.5, 2.0, size=(3, 25))
    problem = Likelihood(inputs, target, link, noise, weight)
    place = rng.uniform(-0.1, 0.1, size=(3, 4))
    place[:, 0] = 2.0  # positive means
    place[:, -1] = rng.uniform(0.3, 2.0, size=3)
    value, gradient, information, _ = problem(place)
    assert np.isfinite(value).all()
    for row in range(3):

        def at(parameters, row=row):
            changed = place.copy()
            changed[row] = parameters
            return problem(changed)[0][row]

        np.testing.assert_allclose(
            gradient[row], numerical_gradient(at, place[row]), rtol=1e-4, atol=1e-4
        )
    assert (np.linalg.eigvalsh(information) >= -1e-8).all()


@settings(deadline=None)
@given(seed=seeds)
def test_sigmoid_optimum_agrees_with_scipy(seed):
    X = sigmoid_table(seed, n=60, noise=0.3)
    fit = fit_families(X, [(2, (0, 1))], link="sigmoid", tol=1e-10)
    link = Sigmoid()

    def residuals(p):
        return X[:, 2] - link.value(X[:, :2] @ p[:2], p[2:])

    starts = [[1.0, -1.0, 1.0, 3.0], [*fit.weights[0], *fit.theta[0, :2]]]
    best = min(
        (least_squares(residuals, start) for start in starts), key=lambda r: r.cost
    )
    squares = fit.noise_variance[0] * 60
    assert squares == pytest.approx(2 * best.cost, rel=1e-5)
    expected = Additive().log_density(
        X[:, 2], X[:, 2] - residuals(best.x), 2 * best.cost / 60
    )
    assert fit.log_likelihood[0] == pytest.approx(expected.sum(), abs=1e-3)


@pytest.mark.parametrize("link", [Linear(), Sigmoid()], ids=repr)
def test_multiplicative_optimum_agrees_with_scipy(link):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, size=(80, 2))
    X[:, 1] = 2.0 / (1.0 + np.exp(-(X[:, 0] - 1.0))) * (1 + 0.1 * rng.normal(size=80))
    fit = fit_families(X, [(1, (0,))], link=link, noise="multiplicative", tol=1e-10)
    noise = Multiplicative()

    def loss(p):
        g = link.value(X[:, 0] * p[0], np.array([p[1], p[2] if link.scaled else 1, 0]))
        if (g <= 0).any():
            return 1e6
        return -noise.log_density(X[:, 1], g, p[3] ** 2).sum()

    start = [*fit.weights[0], *fit.theta[0, :2], np.sqrt(fit.noise_variance[0])]
    ours = loss(start)
    assert -ours == pytest.approx(fit.log_likelihood[0], abs=1e-6)
    options = {"maxiter": 4000, "maxfev": 4000, "xatol": 1e-9, "fatol": 1e-9}
    for first in (start, [0.5, 0.2, 2.0, 0.2]):
        found = minimize(loss, first, method="Nelder-Mead", options=options)
        assert ours <= found.fun + 1e-3


def test_linear_link_is_least_squares():
    X = sigmoid_table(0)
    fit = fit_families(X, [(2, (0, 1, 3)), (3, ())], link="linear")
    table = np.column_stack([X[:, [0, 1, 3]], np.ones(len(X))])
    expected, squares, *_ = np.linalg.lstsq(table, X[:, 2], rcond=None)
    np.testing.assert_allclose(fit.weights[0], expected[:3], atol=1e-6)
    np.testing.assert_allclose(fit.theta[0], [expected[3], 1.0, 0.0], atol=1e-6)
    assert fit.noise_variance[0] == pytest.approx(squares[0] / len(X))
    assert fit.theta[1].tolist() == [pytest.approx(X[:, 3].mean()), 0.0, 0.0]
    assert fit.noise_variance[1] == pytest.approx(X[:, 3].var())


class TestDampedStep:
    """Of offset, one slope and the bend, by the identity as information."""

    curve = Curve(Sigmoid())

    def step(self, gradient, bend):
        gradient, bend = np.array([gradient]), np.array([bend])
        return _damped_step(gradient, np.eye(3)[None], np.zeros(1), bend, self.curve)[0]

    def test_a_linear_response_does_not_get_more_so(self):
        step = self.step([0.0, 0.1, -0.1], self.curve.smallest)
        assert step[2] == 0.0 < step[1]

    def test_a_linear_response_may_bend(self):
        assert self.step([0.0, -0.1, 0.1], self.curve.smallest)[2] > 0.0

    def test_a_bent_response_may_get_linear(self):
        assert self.step([0.0, 0.1, -0.1], 1.0)[2] < 0.0

    def test_steps_have_a_limit(self):
        step = self.step([0.0, 100.0, 0.0], 1.0)
        assert step[1] * self.curve.slope == pytest.approx(1.0)
        short = self.step([0.0, 0.1, 0.0], 1.0)
        assert short[1] == pytest.approx(0.1)


def means(fit, families, X, link):
    """Mean of each family's child, of shape (n_families, n_samples)."""
    eta = [
        X[:, list(parents)] @ weight[: len(parents)]
        for (_, parents), weight in zip(families, fit.weights, strict=True)
    ]
    values = link.value(np.array(eta), fit.theta[:, None])
    return np.where(fit.theta[:, 1:2] == 0, fit.theta[:, :1], values)


@pytest.mark.parametrize("link", LINKS[1:], ids=repr)
def test_parameters_come_back(link):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4_000, 3))
    theta = np.array([0.5, 2.0, 0.0])
    X[:, 2] = link.value(X[:, :2] @ [1.2, -0.7], theta) + 0.02 * X[:, 2]
    families = [(2, (0, 1))]
    fit = fit_families(X, families, link=link)
    sign = np.sign(fit.weights[0, 0])  # a sigmoid upside down is one again
    np.testing.assert_allclose(sign * fit.weights[0], [1.2, -0.7], atol=0.03)
    np.testing.assert_allclose(
        means(fit, families, X, link)[0],
        link.value(X[:, :2] @ [1.2, -0.7], theta),
        atol=0.02,
    )


@pytest.mark.parametrize("noise", ["additive", "multiplicative"])
@pytest.mark.parametrize("link", [Linear(), Sigmoid()], ids=repr)
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_weights_are_repeated_rows(link, noise, seed):
    rng = np.random.default_rng(seed)
    X = np.exp(0.3 * rng.normal(size=(40, 3)))
    times = rng.integers(0, 3, size=40)
    times[:20] = 1
    families = [(0, ()), (1, (0,)), (2, (0, 1))]
    options = {"link": link, "noise": noise}
    a = fit_families(X, families, sample_weight=times.astype(float), **options)
    b = fit_families(np.repeat(X, times, axis=0), families, **options)
    np.testing.assert_allclose(a.log_likelihood, b.log_likelihood, atol=0.05)
    np.testing.assert_allclose(a.noise_variance, b.noise_variance, rtol=0.01)


@given(seed=seeds, scale=st.floats(1e-6, 1e6), shift=st.floats(-1e3, 1e3))
def test_units_do_not_matter(seed, scale, shift):
    """Children may be scaled and shifted, parents of a plain sigmoid be scaled."""
    X = sigmoid_table(seed, n=80)
    families = [(2, (0, 1)), (2, (0,)), (2, ())]
    fit = fit_families(X, families)
    moved = X * [scale, 1 / scale, 1.0, 1.0]
    moved[:, 2] = moved[:, 2] * scale + shift
    other = fit_families(moved, families)
    np.testing.assert_allclose(
        other.log_likelihood,
        fit.log_likelihood - 80 * np.log(scale),
        rtol=1e-6,
        atol=1e-2,
    )
    rounding = 1e-9 * (abs(shift) + scale)
    np.testing.assert_allclose(
        means(other, families, moved, Sigmoid()),
        means(fit, families, X, Sigmoid()) * scale + shift,
        atol=0.02 * scale + rounding,
    )


def test_means_are_those_of_the_likelihood():
    X = np.exp(0.3 * sigmoid_table(3)[:, [0, 1, 3]])
    for link in LINKS[:2]:
        for noise in (Additive(), Multiplicative()):
            families = [(2, (0, 1))]
            fit = fit_families(X, families, link=link, noise=noise)
            mean = means(fit, families, X, link)[0]
            density = noise.log_density(X[:, 2], mean, fit.noise_variance[0])
            assert density.sum() == pytest.approx(fit.log_likelihood[0], abs=1e-6)


def test_network_of_families():
    X = sigmoid_table(0)
    adjacency = np.zeros((4, 4), dtype=bool)
    adjacency[[0, 1], 2] = True
    weights, theta, variance, log_likelihood = fit_network(X, adjacency)
    assert (weights != 0).tolist() == adjacency.tolist()
    fit = fit_families(X, [(2, (0, 1))])
    np.testing.assert_allclose(weights[:2, 2], fit.weights[0], rtol=1e-4)
    np.testing.assert_allclose(theta[2], fit.theta[0], rtol=1e-4)
    np.testing.assert_allclose(variance[3], X[:, 3].var())
    assert log_likelihood.shape == (4,)


POOR = {
    "constant": np.column_stack([np.ones(20), 1.0 + np.arange(20), np.full(20, 3.0)]),
    "duplicate": np.repeat(np.arange(1.0, 21.0)[:, None], 3, axis=1),
    "two rows": np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 5.0]]),
    "one row": np.array([[1.0, 2.0, 3.0]]),
    "huge": 1e12 * (1.0 + np.random.default_rng(0).random((30, 3))),
    "tiny": 1e-12 * (1.0 + np.random.default_rng(0).random((30, 3))),
    "step": np.column_stack(
        [np.linspace(-1, 1, 40), np.linspace(-1, 1, 40) > 0, np.ones(40)]
    )
    + 2.0,
    "outlier": np.where(
        np.eye(30, 3), 1e6, 1.0 + np.random.default_rng(0).random((30, 3))
    ),
}


@pytest.mark.parametrize("data", POOR)
@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.parametrize("noise", ["additive", "multiplicative"])
def test_poor_data_make_finite_fits(data, link, noise):
    X = POOR[data]
    families = [(j, tuple(i for i in range(3) if i != j)) for j in range(3)]
    families += [(1, (0,)), (1, ())]
    fit = fit_families(X, families, link=link, noise=noise)
    for value in (fit.weights, fit.theta, fit.noise_variance, fit.log_likelihood):
        assert np.isfinite(value).all()
    assert (fit.noise_variance > 0).all()
    evaluator = NonlinearEvaluator(X, link=link, noise=noise, n_candidates=1)
    result = greedy_search(
        evaluator, Rules.free(X.shape[1], max_iter=20, max_parents=2)
    )
    assert np.isfinite(result.score)


def test_multiplicative_noise_needs_positive_data():
    with pytest.raises(ValueError, match="positive values"):
        fit_families(sigmoid_table(0), [(0, (1,))], noise="multiplicative")


class Laplace(Noise):
    """A noise model of one's own: absolute errors, smoothed around 0."""

    name = "laplace"

    def log_density(self, x, g, variance):
        return -np.sqrt((x - g) ** 2 + 1e-4) / np.sqrt(variance) - 0.5 * np.log(
            variance
        )

    def score(self, x, g, variance):
        error = x - g
        return error / np.sqrt(error**2 + 1e-4) / np.sqrt(variance)

    def information(self, g, variance):
        return np.broadcast_to(1.0 / variance, np.broadcast(g, variance).shape)

    def squared_error(self, x, g):
        return (x - g) ** 2

    def ideal_mean(self, x, variance):
        return x

    def ideal_curvature(self, g, variance):
        return self.information(g, variance)

    def draw(self, g, variance, rng):
        return rng.laplace(g, np.sqrt(variance))


@pytest.mark.parametrize("similarity", ["C1", "C2", "C3"])
@pytest.mark.parametrize(
    ("link", "noise"),
    [(Tanh(), Additive()), (Softplus(), Additive()), (Sigmoid(), Laplace())],
    ids=repr,
)
def test_links_and_noises_of_ones_own_run_through_the_search(link, noise, similarity):
    X = sigmoid_table(0)
    evaluator = NonlinearEvaluator(
        X, link=link, noise=noise, n_candidates=1, similarity=similarity
    )
    forbidden = np.ones((4, 4), dtype=bool)
    forbidden[:2, 2] = forbidden[3, 2] = False
    result = greedy_search(evaluator, Rules.free(len(forbidden), forbidden=forbidden))
    assert result.adjacency[:, 2].tolist() == [True, True, False, False]


def moves(evaluator, family, allowed, children=None, room=True):
    """Scores of one family after each of its moves."""
    nothing = np.zeros((1, evaluator.n_nodes), dtype=bool)
    children = nothing if children is None else children
    return evaluator.move_scores([family], allowed, children, [room])[0]


def test_exhaustive_scores_are_those_of_single_families():
    X = sigmoid_table(0, n=60)
    families = [(2, (0, 3)), (3, ())]
    allowed = np.array([[False, True, False, False], [True, True, True, False]])
    evaluator = NonlinearEvaluator(X, n_candidates=None, tol=1e-8)
    first, second = evaluator.move_scores(families, allowed, ~allowed, [True, True])
    assert evaluator.n_evaluated == 4 + 2 + 2 + len(families)

    def score(child, parents):
        fit = fit_families(X, [(child, parents)], tol=1e-10)
        n_parameters = 2 if not parents else len(parents) + 3
        return fit.log_likelihood[0] - 0.5 * np.log(60) * n_parameters

    expected = np.full((3, 5), -np.inf)
    expected[:, 1] = score(2, (0, 1, 3)), score(2, (1, 3)), score(2, (0, 1))
    expected[:, 4] = score(2, (0, 3)), score(2, (3,)), score(2, (0,))
    np.testing.assert_allclose(first, expected, atol=1e-3)
    expected = [[*(score(3, (z,)) for z in range(3)), -np.inf, score(3, ())]]
    np.testing.assert_allclose(second, expected, atol=1e-3)


@pytest.mark.parametrize("constant", [False, True])
def test_linear_families_score_as_in_the_linear_evaluator(constant):
    X = sigmoid_table(0, n=50)
    if constant:
        X[:, 3] = 7.0
    families = [(0, ()), (3, ()), (2, (0,)), (2, (0, 1)), (3, (0, 2))]
    linear = LinearEvaluator(GaussianStatistics.of(X))
    expected = [linear.family_score(*family) for family in families]
    evaluator = NonlinearEvaluator(X, link="linear", tol=1e-9)
    np.testing.assert_allclose(evaluator.pair_scores(families), expected, atol=1e-3)


@pytest.mark.parametrize("noise", ["additive", "multiplicative"])
@pytest.mark.parametrize("link", [Linear(), Sigmoid(), Softplus()], ids=repr)
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_a_further_parent_never_lowers_the_likelihood(link, noise, seed):
    rng = np.random.default_rng(seed)
    X = np.exp(0.4 * rng.normal(size=(30, 5)) + 0.3 * rng.normal(size=(30, 1)))
    evaluator = NonlinearEvaluator(
        X, link=link, noise=noise, n_candidates=None, parameter_cost=0.0
    )
    allowed = np.array([[False, False, True, True, True]])
    before = evaluator.family_score(0, (1,))
    after = moves(evaluator, (0, (1,)), allowed)[0, 2:-1]
    assert (after >= before - 1e-6).all()


def test_one_queue_per_family():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 8)) + rng.normal(size=(100, 1))
    allowed = np.ones((1, 8), dtype=bool)
    allowed[0, :3] = False
    for similarity in ("C1", "C2", "C3"):
        evaluator = NonlinearEvaluator(X, n_candidates=3, similarity=similarity)
        scores = moves(evaluator, (0, (1, 2)), allowed)
        assert np.isfinite(scores[:, :-1]).sum() <= 3
        # No room for a further parent: the whole queue is for replacements.
        scores = moves(evaluator, (0, (1, 2)), allowed, room=False)
        assert not np.isfinite(scores[0, :-1]).any()
        assert 0 < np.isfinite(scores[1:, :-1]).sum() <= 3
        assert np.isfinite(scores[:, -1]).all()


@pytest.mark.parametrize("similarity", ["C2", "C3"])
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
@example(seed=151)  # a reversal, of which C3 expects too little
def test_many_candidates_find_what_the_exhaustive_search_finds(similarity, seed):
    X = sigmoid_table(seed, n=100)
    exact = NonlinearEvaluator(X, n_candidates=None)
    pruned = NonlinearEvaluator(X, n_candidates=50, similarity=similarity)
    a, b = greedy_search(exact), greedy_search(pruned)
    assert b.score == pytest.approx(a.score, abs=2.0)
    assert pruned.n_evaluated <= exact.n_evaluated + len(X)


def test_scores_do_not_depend_on_the_order_of_columns():
    X = sigmoid_table(5, n=80)
    order = np.array([3, 1, 0, 2])
    place = np.argsort(order)
    families = [(2, (0, 1)), (2, (0, 3)), (0, (1,))]
    scores = NonlinearEvaluator(X).pair_scores(families)
    moved = [
        (int(place[c]), tuple(sorted(place[list(p)].tolist()))) for c, p in families
    ]
    other = NonlinearEvaluator(X[:, order]).pair_scores(moved)
    np.testing.assert_allclose(scores, other, atol=1e-2)


def test_reversals_are_scored_where_they_are_promising():
    X = sigmoid_table(0)
    nothing = np.zeros((1, 4), dtype=bool)
    evaluator = NonlinearEvaluator(X, n_candidates=1)
    for child, promising in ((2, True), (3, False)):
        children = np.arange(4)[None] == child
        scores = moves(evaluator, (0, ()), nothing, children)[0, :-1]
        np.testing.assert_array_equal(np.isfinite(scores), children[0] & promising)
    expected = evaluator.family_score(0, (2,))
    scores = moves(evaluator, (0, ()), nothing, np.arange(4)[None] == 2)
    assert scores[0, 2] == pytest.approx(expected)
    full = moves(evaluator, (0, ()), nothing, np.arange(4)[None] == 2, room=False)
    assert np.isneginf(full[0, :-1]).all()


def test_costs_of_parameters_and_edges():
    X = sigmoid_table(0)
    plain = NonlinearEvaluator(X, parameter_cost=0.0)
    costly = NonlinearEvaluator(X, parameter_cost=2.0, edge_cost=1.0)
    assert plain.family_score(2, (0, 1)) - costly.family_score(2, (0, 1)) == (
        pytest.approx(2.0 * 5 + 2.0)
    )
    assert plain.family_score(2, ()) - costly.family_score(2, ()) == pytest.approx(4.0)


def test_expected_gains_are_net_of_the_penalty():
    X = sigmoid_table(0)
    plain, costly = (
        NonlinearEvaluator(X, link="linear", parameter_cost=price, edge_cost=price)
        for price in (0.0, 1.5)
    )
    for parents in ((), (0,), (0, 1)):
        family = 2, parents
        free, priced = plain._expected(family), costly._expected(family)
        # A parent of a linear family has one parameter and one edge.
        np.testing.assert_allclose(priced[0], free[0] - 3.0)
        np.testing.assert_allclose(priced[1:], free[1:])


def test_more_candidates_than_moves():
    evaluator = NonlinearEvaluator(sigmoid_table(0), n_candidates=50, similarity="C1")
    allowed = np.array([[True, True, False, True]])
    scores = moves(evaluator, (2, ()), allowed)[:1, :-1]
    np.testing.assert_array_equal(np.isfinite(scores), allowed)


@pytest.mark.parametrize("similarity", ["C1", "C3"])
def test_only_c3_leaves_out_what_loses_by_far(similarity):
    X = np.random.default_rng(0).normal(size=(60, 4))
    evaluator = NonlinearEvaluator(X, parameter_cost=50.0, similarity=similarity)
    allowed = np.array([[True, True, False, True]])
    scores = moves(evaluator, (2, ()), allowed)[:1, :-1]
    fitted = similarity == "C1"
    np.testing.assert_array_equal(np.isfinite(scores), allowed & fitted)
