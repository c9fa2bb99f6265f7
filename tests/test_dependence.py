"""Classes above latents, columns read the other way round."""

import warnings

import numpy as np
import pytest

from sklearn_latent import NoisyOrNetwork, QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.exceptions import LatentWarning, ModelMisfitWarning
from sklearn_latent.metrics import edge_f1, match_latents
from sklearn_latent.noisy_or import _refine_causes
from sklearn_latent.noisy_or._refine_causes import thin
from sklearn_latent.noisy_or._statistics.patterns import Patterns


def dependent_network(seed=0, n_latents=8, children=6):
    """Latents that come in two groups, each likely in one class."""
    rng = np.random.default_rng(seed)
    structure = np.kron(np.eye(n_latents, dtype=bool), np.ones(children, dtype=bool))
    # Neighbours share a child, so that all latents are coupled.
    structure[np.arange(n_latents - 1), children * np.arange(1, n_latents)] = True
    failure = np.where(structure, rng.uniform(0.1, 0.4, structure.shape), 1.0)
    prior = np.full((2, n_latents), 0.08)
    prior[0, : n_latents // 2] = prior[1, n_latents // 2 :] = 0.6
    return NoisyOrNetwork(
        prior, failure, np.full(structure.shape[1], 0.01), class_weight=[0.5, 0.5]
    )


def independent_network(seed=0, **kwargs):
    dependent = dependent_network(seed, **kwargs)
    prior = np.random.default_rng(seed).uniform(0.1, 0.4, dependent.n_latents)
    return NoisyOrNetwork(prior, dependent.failure, dependent.leak)


@pytest.fixture(scope="module")
def dependent():
    network = dependent_network(n_latents=4)
    X = network.sample(1000, random_state=0)[0]
    return network, X, learn(X)


def learn(X, weights=None, **options):
    """Fit, in silence: models may be wrong, which is what is being compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LatentWarning)
        return QuartetStructureLearner(**options).fit(X, sample_weight=weights)


class TestClasses:
    def test_dependent_latents_get_classes(self, dependent):
        network, X, learner = dependent
        plain = learn(X, dependence=None)
        assert plain.n_classes_ == 1
        assert learner.n_classes_ > 1
        other, _ = network.sample(4000, random_state=1)
        assert learner.score(other) > plain.score(other) + 0.1
        assert learner.score(other) > network.log_likelihood(other).mean() - 0.1
        assert learner.class_prior_.shape == (learner.n_classes_, learner.n_latents_)
        np.testing.assert_allclose(
            learner.class_weight_ @ learner.class_prior_, learner.prior_
        )
        assert NoisyOrNetwork.from_json(learner.network_.to_json()) == learner.network_
        assert np.isfinite(learner.prior_stderr_).all()

    def test_two_copies_of_the_rows_are_rows_of_weight_two(self):
        X, _ = dependent_network(n_latents=3).sample(400, random_state=0)
        one, two = learn(X, np.full(len(X), 2.0)), learn(np.vstack([X, X]))
        for name in ("prior_", "failure_", "leak_", "class_prior_"):
            np.testing.assert_allclose(
                getattr(one, name), getattr(two, name), atol=1e-6
            )

    def test_independent_latents_get_none(self):
        X, _ = independent_network(1).sample(2000, random_state=1)
        learner = QuartetStructureLearner().fit(X)
        assert learner.n_classes_ == 1
        assert learner.n_latents_ == 8
        np.testing.assert_array_equal(learner.class_weight_, [1.0])
        np.testing.assert_array_equal(learner.class_prior_[0], learner.prior_)


@pytest.fixture(scope="module")
def rows():
    network = independent_network(n_latents=4)
    return network.sample(1500, random_state=0)[0]


@pytest.fixture(scope="module")
def straight(rows):
    return QuartetStructureLearner().fit(rows)


class TestPolarity:
    FLIPPED = np.array([3, 10, 17, 22])

    def test_turned_columns_are_found(self, rows, straight):
        X = rows.copy()
        X[:, self.FLIPPED] = 1 - X[:, self.FLIPPED]
        np.testing.assert_array_equal(straight.polarity_, 1)
        np.testing.assert_array_equal(learn(X, polarity=None).polarity_, 1)
        learner = QuartetStructureLearner().fit(X)
        np.testing.assert_array_equal(
            np.flatnonzero(learner.polarity_ < 0), self.FLIPPED
        )
        # The same rows, so the same network, up to the order of sums.
        np.testing.assert_array_equal(
            np.sort(learner.structure_, axis=0), np.sort(straight.structure_, axis=0)
        )
        assert edge_f1(straight.structure_, learner.structure_) == 1.0
        np.testing.assert_allclose(learner.leak_, straight.leak_, atol=0.01)
        assert learner.score(X) == pytest.approx(straight.score(rows), abs=1e-3)
        network = learner.network_
        assert NoisyOrNetwork.from_json(network.to_json()) == network

    def test_an_and_of_causes_is_an_or_of_their_absence(self):
        """All columns are read as their opposite, and the latents are the absences."""
        rng = np.random.default_rng(0)
        structure = np.zeros((5, 30), dtype=bool)
        for column in range(30):
            structure[rng.choice(5, 1 + column % 3, replace=False), column] = True
        failure = np.where(structure, rng.uniform(0.05, 0.3, structure.shape), 1.0)
        absence = NoisyOrNetwork(
            rng.uniform(0.2, 0.5, 5), failure, rng.uniform(0.02, 0.2, 30)
        )
        X = 1 - absence.sample(1500, random_state=0)[0]
        learner = learn(X)
        np.testing.assert_array_equal(learner.polarity_, -1)
        assert learner.n_classes_ == 1
        assert edge_f1(structure, learner.structure_) > 0.95
        other = 1 - absence.sample(2000, random_state=1)[0]
        best = absence.log_likelihood(1 - other).mean()
        assert learner.score(other) == pytest.approx(best, abs=0.1)

    def test_noise_turns_nothing(self):
        """Of many pairs some depend negatively by chance."""
        for seed in (3, 11, 12):
            rng = np.random.RandomState(seed)
            X = rng.uniform(size=(300, 64)) < 0.4
            # One pair that never goes together.
            X[:, 1] &= ~X[:, 0]
            learner = learn(X)
            assert learner.n_latents_ == 0
            np.testing.assert_array_equal(learner.polarity_, 1)
            np.testing.assert_allclose(learner.leak_, X.mean(axis=0), atol=0.01)


def coupled_network(seed, n_latents=20, n_features=60):
    rng = np.random.default_rng(seed)
    failure = np.ones((n_latents, n_features))
    for row in failure:
        children = rng.choice(n_features, rng.integers(5, 16), replace=False)
        row[children] = rng.uniform(0.1, 0.7, len(children))
    return NoisyOrNetwork(
        rng.uniform(0.02, 0.3, n_latents), failure, rng.uniform(0.001, 0.05, n_features)
    )


def test_twenty_coupled_latents():
    network = coupled_network(0)
    X, _ = network.sample(3000, random_state=0)
    learner = QuartetStructureLearner(random_state=0).fit(X)
    assert edge_f1(network.structure, learner.structure_) >= 0.9
    _, recovered = match_latents(network.failure, learner.failure_, learner.prior_)
    assert learner.n_latents_ - recovered.sum() <= 1
    # Many couples: likelihoods are bounds, and say so.
    assert not learner.is_exact_
    assert learner.n_classes_ == 1


@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_samples_stand_for_all(weight):
    rng = np.random.default_rng(0)
    on = np.unique(rng.random((900, 12)) < 0.5, axis=0)
    patterns = Patterns(on, None, weight * rng.uniform(0.5, 3.0, len(on)))
    assert thin(patterns, len(on), None) is patterns
    few = thin(patterns, 100, np.random.RandomState(0))
    assert few.weights.sum() == pytest.approx(100, abs=1)
    rates = [p.weights @ p.on / p.weights.sum() for p in (few, patterns)]
    np.testing.assert_allclose(*rates, atol=0.15)


def test_a_heavy_row_that_is_drawn_twice_is_one_row():
    weights = np.r_[50.0, np.full(49, 0.5)]
    on = np.arange(50)[:, np.newaxis] >> np.arange(6) & 1 == 1
    few = thin(Patterns(on, None, weights, weights**2), 20, np.random.RandomState(0))
    np.testing.assert_allclose(few.copies, 1.0)


class TestReadable:
    """A table is not a mixture whose classes are dressed as latents."""

    @pytest.mark.parametrize("n_rows", [300, 30_000])
    def test_one_trait_is_one_latent_whatever_the_rows(self, n_rows):
        rng = np.random.default_rng(1)
        trait = rng.standard_normal((n_rows, 1))
        odds = np.exp(np.linspace(0.8, 2.0, 7) * trait + np.linspace(-1.5, 1.5, 7))
        X = rng.random(odds.shape) < odds / (1.0 + odds)
        assert learn(X).n_latents_ <= 2

    @pytest.mark.parametrize("seed", range(3))
    def test_classes_of_rows_are_no_latents(self, seed):
        rng = np.random.default_rng(seed)
        rates = rng.uniform(0.05, 0.95, (6, 12))
        X = rng.random((1500, 12)) < rates[rng.integers(6, size=1500)]
        learner = learn(X)
        assert learner.n_classes_ < max(2, learner.n_latents_)
        assert learner.network_.n_parameters <= 1500 / 5
        assert not (learner.structure_.all() and learner.n_latents_ > 2)

    @pytest.mark.parametrize("option", ["dependence", "polarity"])
    def test_switching_an_option_off_never_improves_the_bic(self, option, dependent):
        for X in (dependent[1], dependent[1][:, ::-1][:300]):
            simpler = learn(X, **{option: None})
            assert learn(X).bic_ <= simpler.bic_ + 1e-6 * abs(simpler.bic_)


def test_a_wrong_network_is_not_returned_in_silence(monkeypatch):
    """Whatever the refinement returns, the fit compares it with its rows."""
    X, _ = independent_network(n_latents=4).sample(500, random_state=0)
    n_features = X.shape[1]
    wrong = NoisyOrNetwork._of(
        np.array([0.5]), np.full((1, n_features), 0.2), np.full(n_features, 0.3)
    )
    monkeypatch.setattr(_refine_causes, "refine_network", lambda *_: wrong)
    with pytest.warns(ModelMisfitWarning, match="below that of independent columns"):
        learner = QuartetStructureLearner().fit(X)
    assert learner.n_latents_ == 1


@pytest.mark.parametrize(("seed", "n_samples"), [(0, 1500), (3, 5000)])
def test_independent_latents_that_share_features(seed, n_samples):
    """Births one by one miss some, which classes would make up for."""
    structure = np.zeros((3, 8), dtype=bool)
    structure[0, :4] = structure[1, 3:7] = structure[2, 5:] = structure[2, 1] = True
    data = make_noisy_or(structure, n_samples=n_samples, random_state=seed)
    learner = QuartetStructureLearner().fit(data.X)
    assert learner.n_classes_ == 1
    assert match_latents(data.network.failure, learner.failure_)[1].all()
