"""Latents that are rare, or that the data do not show at all."""

import numpy as np
import pytest
from exact_moments import exact_rates
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import networks, seeds, with_parameters

from sklearn_latent import NoisyOrMoMLearner, NoisyOrNetwork
from sklearn_latent.datasets import make_noisy_or_images
from sklearn_latent.exceptions import (
    ModelMisfitWarning,
    PoorDataWarning,
    UnidentifiableWarning,
)
from sklearn_latent.noisy_or import _moment_plan as plan
from sklearn_latent.noisy_or import _state_table
from sklearn_latent.noisy_or._interactions import Interactions
from sklearn_latent.noisy_or._maximum_likelihood import (
    maximize_likelihood,
    standard_errors,
)
from sklearn_latent.noisy_or._moment_fit import fit_errors
from sklearn_latent.noisy_or._state_table import TableRows
from sklearn_latent.noisy_or._statistics.patterns import Patterns

# Columns that are replaced by noise contradict the model as well.
poor = pytest.mark.filterwarnings(
    *(
        f"ignore::{warning.__module__}.{warning.__name__}"
        for warning in (ModelMisfitWarning, PoorDataWarning, UnidentifiableWarning)
    )
)


def by_least_squares(monkeypatch):
    """Keep no tables, as for networks with many latents."""
    monkeypatch.setattr(plan, "MAX_ENUMERATED", 0)


def random_table(network, n_rows, seed):
    """Rows of a network in which some columns are replaced by noise."""
    rng = np.random.RandomState(seed)
    X, _ = network.sample(n_rows, random_state=rng)
    noise = rng.random_sample(X.shape) < rng.choice([0.0, 0.02, 0.5, 1.0], X.shape[1])
    return np.where(rng.random_sample(X.shape[1]) < 0.4, noise, X).astype(np.int8)


@pytest.mark.parametrize("least_squares", [False, True])
@poor
@settings(max_examples=40, deadline=None)
@given(
    network=networks(max_latents=4, max_features=8), n=st.integers(20, 300), seed=seeds
)
def test_no_prior_exceeds_what_rates_allow(least_squares, network, n, seed):
    X = random_table(network, n, seed)
    with pytest.MonkeyPatch.context() as monkeypatch:
        if least_squares:
            by_least_squares(monkeypatch)
        learner = NoisyOrMoMLearner(network.structure).fit(X)
    rates = (X.sum(axis=0) + 0.5) / (n + 1.0)
    caused = learner.prior_[:, None] * (1.0 - learner.failure_)
    # A share of the rows in which the feature is on; a latent that nothing shows may
    # be on in the next row.
    assert (caused <= rates + 1.0 / n).all()
    if least_squares:
        # All latents together, not only each of them.
        assert (1.0 - (1.0 - caused).prod(axis=0) <= rates + 1e-5).all()


@pytest.mark.parametrize("least_squares", [False, True])
@poor
def test_independent_features_mean_a_rare_latent_that_may_be_frequent(
    monkeypatch, least_squares
):
    if least_squares:
        by_least_squares(monkeypatch)
    X = np.random.RandomState(0).random_sample((20_000, 6)) < 0.3
    learner = NoisyOrMoMLearner(np.ones((1, 6), dtype=bool)).fit(X)
    assert learner.prior_[0] < 0.02
    assert learner.prior_stderr_[0] > 2 * learner.prior_[0]
    np.testing.assert_allclose(
        1.0 - learner.network_.negative_moment(np.arange(6)[:, None]),
        X.mean(axis=0),
        atol=1e-3,
    )


@pytest.mark.parametrize("least_squares", [False, True])
@poor
def test_a_latent_that_was_never_on(monkeypatch, least_squares):
    """Its children are on by another latent and by themselves."""
    if least_squares:
        by_least_squares(monkeypatch)
    structure = np.zeros((2, 10), dtype=bool)
    structure[0, :6] = structure[1, 4:] = True
    failure = np.where(structure, 0.4, 1.0)
    network = NoisyOrNetwork([0.2, 0.0], failure, np.full(10, 0.05))
    X, _ = network.sample(5_000, random_state=0)
    learner = NoisyOrMoMLearner(structure).fit(X)
    seen, unseen = learner.prior_
    assert abs(seen - 0.2) < 4 * learner.prior_stderr_[0] < 0.1
    assert unseen < 0.02
    assert learner.prior_stderr_[1] > unseen
    # Nothing is known of its own edges either.
    assert np.median(learner.failure_stderr_[1, structure[1]]) > 0.1


@poor
def test_children_that_are_never_on_leave_no_room(monkeypatch):
    by_least_squares(monkeypatch)
    learner = NoisyOrMoMLearner(np.ones((1, 4), dtype=bool)).fit(np.zeros((5_000, 4)))
    assert learner.prior_[0] < 1e-3
    assert learner.prior_stderr_[0] < 1e-2


@poor
def test_edges_out_of_reach_stay_without_effect(monkeypatch):
    by_least_squares(monkeypatch)
    structure = np.zeros((3, 12), dtype=bool)
    structure[0, :5] = structure[1, 1:6] = structure[2, 3:] = True
    X = np.random.RandomState(0).random_sample((500, 12)) < 0.1
    learner = NoisyOrMoMLearner(structure, clean_up=False).fit(X)
    assert np.isinf(learner.depth_).any()
    assert (learner.failure_[np.isinf(learner.depth_)] > 1 - 1e-5).all()


@settings(max_examples=40, deadline=None)
@given(networks(max_latents=4, max_features=6), seeds)
def test_what_rates_allow_and_leave(network, seed):
    other, rates = with_parameters(network.structure, seed), exact_rates(network)
    # The network itself is allowed, and its leaks explain the rest.
    allowed = rates.bound(network.prior, network.failure)
    np.testing.assert_allclose(allowed, network.failure, atol=1e-6)
    leak = rates.leak(network.prior, network.failure)
    np.testing.assert_allclose(leak, network.leak, atol=1e-5)
    failure = rates.bound(other.prior, other.failure)
    assert rates.excess(other.prior, failure).max() < 1e-9
    assert (failure >= other.failure - 1e-12).all()
    np.testing.assert_array_equal(failure[~network.structure], 1.0)
    # With few rows, what other latents leave may be less than nothing.
    rates.weight = np.full_like(rates.weight, 20.0)
    explained = np.log1p(-other.prior[:, None] * (1.0 - other.failure)).sum(axis=0)
    left = explained - rates.log_off
    mean = stats.truncnorm.mean(-20.0 * left, np.inf, loc=left, scale=1 / 20.0)
    leak = rates.leak(other.prior, other.failure)
    np.testing.assert_allclose(-np.log1p(-leak), mean, rtol=1e-6, atol=2e-6)


def test_errors_of_least_squares_are_the_spread_of_fits(monkeypatch):
    by_least_squares(monkeypatch)
    structure = np.zeros((3, 12), dtype=bool)
    structure[0, :5] = structure[1, 4:9] = structure[2, 8:] = True
    network = with_parameters(structure, 0)
    fits = [
        NoisyOrMoMLearner(structure).fit(network.sample(20_000, random_state=seed)[0])
        for seed in range(30)
    ]
    moments = fits[0]._statistics.moments
    interactions = Interactions(moments, structure, fits[0]._plan.fit_sets)
    prior, failure = fit_errors(interactions, moments, network, structure, n_draws=200)
    # A spread over 30 fits has an error of its own of one part in eight.
    np.testing.assert_allclose(prior, np.std([m.prior_ for m in fits], 0), rtol=0.5)
    spread = np.std([m.failure_ for m in fits], 0)[structure]
    np.testing.assert_allclose(failure[structure], spread, rtol=0.5)
    assert np.mean(failure[structure] / spread) == pytest.approx(1.0, abs=0.1)
    assert np.isnan(failure[~structure]).all()
    np.testing.assert_allclose(fits[0].prior_stderr_, prior, rtol=0.5)


class TestGroups:
    """Likelihood of large tables over likely states alone."""

    @staticmethod
    def table(missing=False):
        data = make_noisy_or_images(8_000, random_state=0)
        X = data.X.astype(float)
        if missing:
            X[np.random.RandomState(0).random_sample(X.shape) < 0.1] = np.nan
        return data.network._clipped(), Patterns.of(X)

    @pytest.mark.parametrize("missing", [False, True])
    def test_groups_agree_with_all_states(self, missing):
        network, patterns = self.table(missing)
        exact = TableRows(patterns).expect(network)
        rows = TableRows(patterns)
        assert rows.group(network)
        grouped = rows.expect(network)
        for one, other in zip(exact, grouped, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-3, atol=0.5)
        # A bound: what is left out can only be missing.
        gap = exact.log_likelihood - grouped.log_likelihood
        assert 0 <= gap < 1e-4 * exact.total
        n_states = np.mean([len(group.states) for group in rows.groups])
        assert n_states < network.n_latents**2

    def test_groups_reach_the_same_maximum(self, monkeypatch):
        network, patterns = self.table()
        grouped = maximize_likelihood(network, patterns)
        # The table is large enough for groups, unless nothing is.
        monkeypatch.setattr(_state_table, "SMALLEST_TABLE", np.inf)
        exact = maximize_likelihood(network, patterns)
        assert abs(exact.log_likelihood - grouped.log_likelihood) < 0.2
        errors = standard_errors(exact.network, patterns)[0]
        difference = np.abs(exact.network.prior - grouped.network.prior)
        assert (difference < 0.1 * errors).all()
