"""Search by likelihood: evidence of edges, losses by deletion, proposals."""

import numpy as np
import pytest

from sklearn_latent import (
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import (
    image_sources,
    make_noisy_or_images,
)
from sklearn_latent.noisy_or._statistics.counts import CountedMoments
from sklearn_latent.noisy_or._statistics.patterns import Patterns
from sklearn_latent.noisy_or._structure_search import search as _search
from sklearn_latent.noisy_or._structure_search.evidence import Likelihood
from sklearn_latent.noisy_or._structure_search.smoothed import (
    Model,
    deletion_losses,
    edge_evidence,
)


@pytest.fixture(scope="module")
def images():
    return make_noisy_or_images(1000, random_state=0)


def true_model(data):
    return Model(data.network.prior, data.network.failure, data.network.leak)


def test_deletion_loss_is_the_difference_of_likelihoods(images):
    patterns = Patterns.of(images.X == 1)
    losses = deletion_losses(true_model(images), patterns)
    full = images.network.log_likelihood(images.X).sum()
    for latent in (0, 5):
        keep = np.arange(8) != latent
        part = true_model(images).keep(keep)
        less = NoisyOrNetwork(*part[:3]).log_likelihood(images.X).sum()
        assert losses[latent] == pytest.approx(full - less, rel=1e-6)


def test_edge_evidence_is_the_gradient(images):
    network = images.network
    slope, information = edge_evidence(true_model(images), Patterns.of(images.X == 1))
    for latent, feature in [(0, 3), (2, 0), (4, 30)]:
        failure = np.array(network.failure)
        values = []
        start = min(failure[latent, feature], 1 - 2e-6)
        for step in (-1e-6, 1e-6):
            failure[latent, feature] = start + step
            moved = NoisyOrNetwork(network.prior, failure, network.leak)
            values.append(moved.log_likelihood(images.X).sum())
        slope_there = (values[1] - values[0]) / 2e-6
        assert slope[latent, feature] == pytest.approx(slope_there, rel=1e-3, abs=0.05)
    assert (information >= 0).all()


def test_search_repairs_missing_and_false_edges_and_halves(images):
    patterns = Patterns.of(images.X == 1)
    likelihood = Likelihood(patterns, np.random.RandomState(0))
    model = true_model(images)
    failure = np.array(model.failure)
    failure[0, np.flatnonzero(failure[0] < 1)[:3]] = 1.0
    failure[1, 60] = 0.8
    broken = likelihood.fit(model._replace(failure=failure))
    repaired = _search.change_edges(broken, likelihood)
    np.testing.assert_array_equal(repaired.structure, model.structure)

    halves = np.vstack([failure[:1], failure])
    halves[0, ::2] = 1.0
    halves[1, 1::2] = 1.0
    double = Model(np.full(9, 0.25), halves, model.leak)
    united = _search.merge_latents(likelihood.fit(double), likelihood)
    assert len(united.prior) == 8


def test_unlikely_rows_show_latents_with_the_same_children():
    """No set of children can tell two latents over all features apart."""
    rng = np.random.RandomState(0)
    truth = NoisyOrNetwork([0.3, 0.4], rng.uniform(0.05, 0.9, (2, 12)), [0.02] * 12)
    X, _ = truth.sample(5000, random_state=0)
    learner = QuartetStructureLearner().fit(X)
    assert learner.n_latents_ == 2
    held_out, _ = truth.sample(5000, random_state=1)
    assert learner.score(held_out) > truth.log_likelihood(held_out).mean() - 0.01


def test_cover_takes_no_proposal_twice(images):
    source = CountedMoments(Patterns.of(images.X == 1))
    proposals = _search.first_proposals(source, np.repeat(image_sources(), 2, axis=0))
    assert len(proposals) in range(8, 11)
