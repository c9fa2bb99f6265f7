"""NoisyOrEM: the laws of maximum likelihood, and of an estimator."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from brute_force import FIGURE_1, figure_1_network, random_network, random_rows
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.exceptions import (
    ApproximateInferenceWarning,
    ModelMisfitWarning,
    PoorDataWarning,
)
from sklearn_latent.noisy_or import _em, _maximum_likelihood
from sklearn_latent.noisy_or import _refine_causes as sampling
from sklearn_latent.noisy_or._beam import FINE, Beam
from sklearn_latent.noisy_or._em import NoisyOrEM, advance
from sklearn_latent.noisy_or._maximum_likelihood import (
    climb_beams,
    cut,
    likelihood_gradient,
)
from sklearn_latent.noisy_or._state_table import TableRows
from sklearn_latent.noisy_or._statistics.patterns import Patterns


@pytest.fixture
def use(monkeypatch):
    """The parameter for an inference; "auto" truncates, however few latents."""

    def choose(inference):
        if inference != "truncated":
            return inference
        monkeypatch.setattr(_em, "MAX_TABLE", -1)
        return "auto"

    return choose


def latent_class_log_likelihood(X, n_starts=5, n_iter=2000):
    """Best mean log-likelihood of a mixture of two products of Bernoullis, by EM."""
    best = -np.inf
    for seed in range(n_starts):
        rng = np.random.default_rng(seed)
        share, rate = 0.5, rng.uniform(0.2, 0.8, (2, X.shape[1]))
        for _ in range(n_iter):
            log_joint = np.log([1 - share, share]) + (
                X @ np.log(rate).T + (1 - X) @ np.log(1 - rate).T
            )
            log_row = np.logaddexp(*log_joint.T)
            posterior = np.exp(log_joint - log_row[:, np.newaxis])
            share = posterior[:, 1].mean()
            rate = (posterior.T @ X + 1e-9) / (posterior.sum(axis=0)[:, None] + 2e-9)
        best = max(best, log_row.mean())
    return best


def test_one_latent_is_a_mixture_of_two_classes():
    """The two-class optimum has all rates ordered, as noisy-or demands."""
    X, _ = random_network(3, 1, 5, density=1.0).sample(1500, random_state=0)
    model = NoisyOrEM(n_init=3, random_state=0).fit(X)
    assert model.lower_bound_ == pytest.approx(
        latent_class_log_likelihood(X.astype(float)), abs=1e-5
    )
    assert model.converged_


def test_recovers_the_network_and_is_stationary():
    network = figure_1_network(0)
    X, _ = network.sample(50_000, random_state=0)
    model = NoisyOrEM(structure=FIGURE_1, random_state=0).fit(X)
    assert model.n_latents is None
    np.testing.assert_allclose(model.prior_, network.prior, atol=0.05)
    np.testing.assert_allclose(model.failure_, network.failure, atol=0.08)
    np.testing.assert_array_equal(model.failure_ == 1.0, ~FIGURE_1)
    assert model.lower_bound_ == pytest.approx(model.score(X), abs=1e-9)
    assert model.lower_bound_ >= network.log_likelihood(X).mean()
    expected = TableRows(Patterns.of(X)).expect(model.network_)
    slopes = likelihood_gradient(model.network_, expected)
    assert np.abs(slopes[0]).max() / len(X) < 1e-4


def test_exact_beats_variational():
    network = figure_1_network(1)
    X, _ = network.sample(5000, random_state=1)
    error = {}
    for inference in ("exact", "variational"):
        model = NoisyOrEM(
            structure=FIGURE_1, inference=inference, random_state=0, tol=1e-5
        )
        biased = pytest.warns(ModelMisfitWarning, match="contradicts its training")
        with biased if inference == "variational" else nullcontext():
            model.fit(X)
        # A bound of the likelihood, or the likelihood itself.
        assert model.lower_bound_ <= model.score(X) + 1e-9
        error[inference] = np.abs(model.failure_ - network.failure).sum()
    assert error["exact"] < error["variational"]


# The rows are noise, and a row that counts three times is none by chance.
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.ModelMisfitWarning")
@pytest.mark.filterwarnings("ignore:sample_weight holds whole numbers")
@pytest.mark.parametrize("inference", ["exact", "truncated", "variational"])
def test_weights_are_copies(inference, use):
    rng = np.random.default_rng(0)
    X = random_rows(0, 80, 5, missing=0.1)
    weights = rng.integers(0, 4, 80)
    model = NoisyOrEM(2, inference=use(inference), tol=1e-4, random_state=0)
    one = clone(model).fit(X, sample_weight=weights)
    order = rng.permutation(weights.sum())
    two = clone(model).fit(np.repeat(X, weights, axis=0)[order])
    np.testing.assert_array_equal(one.prior_, two.prior_)
    np.testing.assert_array_equal(one.failure_, two.failure_)
    assert one.lower_bound_ == two.lower_bound_
    if inference == "truncated":
        # It begins with pseudo-rows, which count less beside heavy rows.
        return
    heavy = clone(model).fit(X, sample_weight=10.0 * weights)
    np.testing.assert_allclose(heavy.lower_bound_, one.lower_bound_, rtol=1e-4)


def test_permuted_features_permute_the_model():
    """With one strong latent there is one optimum, whatever the start."""
    network = NoisyOrNetwork([0.4], [[0.1, 0.2, 0.3, 0.2, 0.4]], np.full(5, 0.05))
    X, _ = network.sample(2000, random_state=1)
    order = np.array([3, 0, 4, 1, 2])
    one = NoisyOrEM(random_state=0).fit(X)
    two = NoisyOrEM(random_state=1).fit(X[:, order])
    np.testing.assert_allclose(two.failure_, one.failure_[:, order], atol=1e-3)
    np.testing.assert_allclose(two.leak_, one.leak_[order], atol=1e-3)


def test_features_without_parents_get_their_rate_as_leak():
    """Components are learned apart, and more starts are never worse."""
    structure = np.zeros((2, 9), dtype=bool)
    structure[0, :3] = structure[1, 3:6] = True
    X = random_rows(0, 300, 9, missing=0.1)
    few, model = (
        NoisyOrEM(structure=structure, n_init=n, tol=1e-5, random_state=0).fit(X)
        for n in (1, 3)
    )
    rate = np.nanmean(X[:, 6:], axis=0)
    np.testing.assert_allclose(model.leak_[6:], rate, atol=1e-6)
    assert model.lower_bound_ == pytest.approx(model.score(X), abs=1e-8)
    assert model.lower_bound_ >= few.lower_bound_ - 1e-4
    assert model.transform(X).shape == (300, 2)


@pytest.mark.parametrize("n_latents", [0, 1, 2])
@pytest.mark.parametrize("value", [0, 1, np.nan])
@pytest.mark.parametrize("inference", ["exact", "truncated", "variational"])
def test_constant_data_gives_a_poor_model_and_no_crash(
    n_latents, value, inference, use
):
    X = np.full((10, 3), float(value))
    model = NoisyOrEM(n_latents, inference=use(inference), tol=1e-4, random_state=0)
    with pytest.warns(PoorDataWarning, match="columns x0, x1, x2 are"):
        model.fit(X)
    for array in (model.prior_, model.failure_, model.leak_):
        assert ((array >= 1e-6) & (array <= 1 - 1e-6)).all()
    assert model.transform(X).shape == (10, n_latents)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inference": "gibbs"}, "inference must be one of .*, got 'gibbs'"),
        ({"n_init": 0}, "n_init must be an integer from 1 to .*, got 0"),
        ({"max_iter": 1.5}, "max_iter must be an integer of at least 1, got 1.5"),
        (
            {"n_latents": -1},
            "n_latents must be an integer .* or None, got -1",
        ),
        ({"tol": -1}, "tol must be a number of at least 0, got -1"),
        ({"structure": np.ones((2, 3))}, r"structure must .*\(2, 4\), got \(2, 3\)"),
        (
            {"n_latents": 17, "inference": "exact"},
            "inference='exact' must .* at most 16 .* got 17; use inference='auto'",
        ),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        NoisyOrEM(**parameters).fit(np.eye(4))


def test_as_many_latents_as_can_be_enumerated(monkeypatch):
    monkeypatch.setattr(_em, "MAX_ENUMERATED", 2)
    X, _ = random_network(0, 2, 4).sample(200, random_state=0)
    model = NoisyOrEM(2, inference="exact", random_state=0)
    assert model.fit(X).n_latents_ == 2
    with pytest.raises(ValueError, match=r"at most 2 latents .* got 3"):
        NoisyOrEM(3, inference="exact").fit(X)


class TestTruncated:
    """EM on the likeliest states, with as few latents as exact EM has."""

    def test_finds_the_exact_maximum(self, use):
        """States that are left out have less than a thousandth of the likeliest one."""
        network = figure_1_network(0)
        X, _ = network.sample(5000, random_state=0)
        model = NoisyOrEM(structure=FIGURE_1, random_state=0)
        exact = clone(model).fit(X)
        truncated = model.set_params(inference=use("truncated")).fit(X)
        assert exact.is_exact_
        assert truncated.converged_
        assert truncated.score(X) <= exact.lower_bound_ + 1e-6
        assert truncated.score(X) >= exact.lower_bound_ - 1e-3
        np.testing.assert_array_equal(truncated.structure_, FIGURE_1)

    @pytest.mark.parametrize("seed", [0, 1, 3])
    def test_bound_is_below_the_likelihood(self, use, seed):
        X = random_network(seed, 4, 9).sample(300, random_state=seed)[0].astype(float)
        X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
        model = NoisyOrEM(4, inference=use("truncated"), tol=1e-4, random_state=0)
        model.fit(X)
        assert model.lower_bound_ <= model.score(X) + 1e-9
        # The likelihood of four latents is exact, whatever EM maximised.
        assert model.is_exact_
        assert model.log_likelihood_ == pytest.approx(model.score(X) * 300)

    def test_pieces_add_up(self, monkeypatch):
        """However the rows are cut."""
        network = random_network(1, 5, 12)
        patterns = Patterns.of(network.sample(400, random_state=0)[0])

        def climbed():
            beams = [Beam(rows, 5, FINE) for rows in cut(patterns)]
            return climb_beams(network, beams, tol=0.0, max_iter=3, smooth=False)

        whole = climbed()
        monkeypatch.setattr(_maximum_likelihood, "PIECE_VALUES", 840)
        pieces = climbed()
        np.testing.assert_allclose(pieces.objectives, whole.objectives, rtol=1e-12)
        np.testing.assert_allclose(pieces.state.failure, whole.state.failure)

    def test_each_component_is_inferred_by_its_size(self, monkeypatch):
        monkeypatch.setattr(_em, "MAX_TABLE", 1)
        structure = np.zeros((3, 8), dtype=bool)
        structure[0, :4] = structure[1, 2:6] = structure[2, 6:] = True
        X, _ = random_network(0, 3, 8).sample(300, random_state=0)
        seen = {}

        def watched(start, *rest):
            seen[len(start.part.latents)] = start.inference
            return advance(start, *rest)

        monkeypatch.setattr(_em, "advance", watched)
        model = NoisyOrEM(structure=structure, max_iter=2, random_state=0)
        with pytest.warns(ConvergenceWarning):
            model.fit(X)
        assert seen == {2: "truncated", 1: "exact"}

    def test_more_latents_than_can_be_enumerated(self):
        network = many_latents()
        X, _ = network.sample(1000, random_state=0)
        model = NoisyOrEM(structure=network.structure, tol=1e-4, random_state=0)
        model.fit(X)
        assert model.converged_
        # In a chain, few latents explain what is on, so that the likelihood is exact.
        assert model.is_exact_
        assert model.lower_bound_ <= model.score(X)
        assert model.log_likelihood_ == pytest.approx(1000 * model.score(X))
        # Better than the truth, on the rows that it was learned from.
        assert model.lower_bound_ > network.log_likelihood(X).mean()
        again = clone(model).set_params(n_jobs=2, n_init=2).fit(X)
        assert again.lower_bound_ >= model.lower_bound_

    def test_warm_start_goes_on(self):
        network = many_latents()
        X, _ = network.sample(500, random_state=0)
        model = NoisyOrEM(structure=network.structure, tol=1e-4, random_state=0)
        model.fit(X)
        first = model.n_iter_, model.lower_bound_
        model.set_params(warm_start=True).fit(X)
        assert model.n_iter_ < first[0]
        assert model.lower_bound_ >= first[1] - 1e-3

    def test_says_that_the_likelihood_is_a_bound(self):
        network = random_network(0, 16, 40, density=0.3)
        structure = network.structure
        X, _ = network.sample(300, random_state=0)
        model = NoisyOrEM(structure=structure, max_iter=5, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        assert not model.is_exact_
        with pytest.warns(ApproximateInferenceWarning, match="out of reach"):
            assert model.bic_ == pytest.approx(model.bic(X))

    def test_likelihood_of_many_rows_is_the_bound_of_all(self, monkeypatch):
        """Not an estimate from a sample, which may be further off."""
        monkeypatch.setattr(sampling, "SCORED_ROWS", (50, 50))
        network = many_latents()
        X, _ = network.sample(200, random_state=0)
        model = NoisyOrEM(structure=network.structure, tol=1e-3, random_state=0)
        model.fit(X)
        assert not model.is_exact_
        assert model.log_likelihood_ == pytest.approx(200 * model.lower_bound_)
        assert model.log_likelihood_ <= 200 * model.score(X)


def many_latents():
    """A chain of 20 latents, each of which shares features with the next."""
    rng = np.random.default_rng(0)
    failure = np.ones((20, 62))
    for latent in range(20):
        failure[latent, 3 * latent : 3 * latent + 5] = rng.uniform(0.1, 0.5, 5)
    return NoisyOrNetwork(rng.uniform(0.05, 0.2, 20), failure, np.full(62, 0.02))


class TestMisfit:
    """A fit says that its model contradicts the data."""

    def test_too_few_latents(self):
        failure = np.ones((2, 8))
        failure[0, :4] = failure[1, 4:] = 0.1
        X, _ = NoisyOrNetwork([0.3, 0.3], failure, np.full(8, 0.01)).sample(
            1000, random_state=0
        )
        with pytest.warns(ModelMisfitWarning, match="pairs of features differ"):
            NoisyOrEM(1, random_state=0).fit(X)
        NoisyOrEM(2, n_init=3, random_state=0).fit(X)

    @pytest.mark.parametrize("inference", ["exact", "truncated"])
    def test_a_fit_that_is_not_finished_says_only_that(self, inference, use):
        X, _ = random_network(7, 2, 6).sample(500, random_state=0)
        model = NoisyOrEM(2, max_iter=2, inference=use(inference), random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
        assert [w.category for w in caught] == [ConvergenceWarning]
        assert "max_iter=2" in str(caught[0].message)
        assert not model.converged_
        assert model.n_iter_ == 2
