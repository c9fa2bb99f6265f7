"""EM and standard errors on the states of beams."""

import numpy as np
import pytest
from beams import EVERYTHING, cases, read, sampled, searched
from brute_force import random_network, states
from hypothesis import assume, given, settings

from sklearn_latent._tables.blocks import LocalBlocks
from sklearn_latent.noisy_or import _beam, _maximum_likelihood
from sklearn_latent.noisy_or._beam import FINE, Beam
from sklearn_latent.noisy_or._expected import Expected, maximize
from sklearn_latent.noisy_or._maximum_likelihood import (
    climb_beams,
    errors_of,
    expect_block,
    standard_errors,
)
from sklearn_latent.noisy_or._state_table import TableRows
from sklearn_latent.noisy_or._statistics.packed import PackedRows
from sklearn_latent.noisy_or._statistics.patterns import components

MOST_VALUES = 1 << 24


def assert_same(one, two, **tolerance):
    for name, a, b in zip(Expected._fields, one, two, strict=True):
        np.testing.assert_allclose(a, b, err_msg=name, **tolerance)


@settings(max_examples=40, deadline=None)
@given(cases(n_latents=(0, 4)))
def test_expectations_are_exact_over_all_states(case):
    """Two engines, one answer."""
    beam = searched(*case)
    exact = TableRows(beam.patterns).expect(case[0]._clipped(1e-15))
    assert_same(beam.expect(), exact, rtol=1e-8, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(cases(n_latents=(0, 4)))
def test_expectations_add_up(case):
    """Over rows, over classes, and as rows with weights."""
    network, X = case
    beam = searched(network, X)
    whole = beam.expect()
    half = len(X) // 2
    parts = [
        Beam(beam.patterns.take(rows), network.n_latents, EVERYTHING)
        for rows in (slice(0, half), slice(half, None))
        if len(X[rows])
    ]
    for part in parts:
        part.search(network)
    total = parts[0].expect()
    for part in parts[1:]:
        total += part.expect()
    assert_same(total, whole, rtol=1e-9, atol=1e-9)
    assert whole.total == pytest.approx(beam.patterns.weights.sum())
    mean = beam.patterns.weights @ beam.posterior
    np.testing.assert_allclose(whole.latent_on.sum(axis=0), mean, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_blocks_add_up(missing, n_classes, monkeypatch):
    network = random_network(1, 6, 12, density=0.4, n_classes=n_classes)
    patterns = read(network, sampled(network, 200, missing))
    whole = PackedRows.of_patterns(patterns)
    blocks = [
        PackedRows.of_patterns(patterns.take(slice(first, first + 70)))
        for first in (0, 70, 140)
    ]
    expected = expect_block(whole, network, MOST_VALUES)
    split = LocalBlocks(blocks).sum(expect_block, network, MOST_VALUES)
    assert_same(split, expected, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(_maximum_likelihood, "PIECE_VALUES", 132)
    pieces = expect_block(whole, network, MOST_VALUES)
    assert_same(pieces, expected, rtol=1e-9, atol=1e-9)


def test_a_sample_stands_for_its_block():
    """As many rows as values are allowed, with the weight of all."""
    network = random_network(1, 3, 10, density=0.5, n_classes=1)
    block = PackedRows.of_patterns(read(network, sampled(network, 400)))
    some = expect_block(block, network, 1000)
    every = expect_block(block, network, MOST_VALUES)
    assert some.total == pytest.approx(every.total)
    assert some.log_likelihood == pytest.approx(every.log_likelihood, rel=0.2)
    assert some.log_likelihood != every.log_likelihood


def perturbed(parameters, seed):
    """Other parameters of the same structure."""
    rng = np.random.default_rng(seed)

    def move(values):
        return np.clip(values + rng.uniform(-0.2, 0.2, np.shape(values)), 0.05, 0.95)

    return parameters._with(
        class_prior=move(parameters.class_prior),
        failure=np.where(parameters.structure, move(parameters.failure), 1.0),
        leak=move(parameters.leak),
    )


@pytest.mark.parametrize("seed", range(3))
def test_em_reaches_the_truth(seed):
    """All rows, each weighted by its probability."""
    truth = random_network(seed, 4, 7, density=0.6, n_classes=1)
    patterns = read(truth, states(7).astype(float))
    patterns = patterns._replace(weights=np.exp(truth.log_likelihood(states(7))) * 1000)
    beam = Beam(patterns, 4, EVERYTHING)
    # Within what is left to gain.
    start = perturbed(truth, seed)
    ascent = climb_beams(start, [beam], tol=1e-9, max_iter=50, smooth=False)
    assert (np.diff(ascent.objectives) > -1e-6).all()
    best = patterns.weights @ np.log(patterns.weights / 1000)
    assert best - 2.0 < ascent.objective <= best + 1e-6


def test_truth_with_classes_is_a_fixed_point_but_for_pseudo_rows():
    truth = random_network(2, 4, 7, density=0.6, n_classes=3)
    rows = states(7).astype(float)
    patterns = read(truth, rows)
    patterns = patterns._replace(weights=np.exp(truth.log_likelihood(rows)) * 1e9)
    beam = Beam(patterns, 4, EVERYTHING)
    beam.search(truth)
    found = maximize(truth, beam.expect(), smooth=True)
    for name in ("class_weight", "class_prior", "failure", "leak"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(truth, name), atol=1e-6
        )


@settings(max_examples=25, deadline=None)
@given(cases(n_latents=(0, 4), n_classes=(1, 1), n_rows=(5, 60)))
def test_standard_errors_are_exact_over_all_states(case):
    network, X = case
    # Those of other components are taken one component at a time.
    assume(len(components(network.structure)) == 1)
    beam = searched(network, X)
    # Twice as many rows as parameters at least, so that they are inverted together.
    beam.patterns = beam.patterns._replace(weights=beam.patterns.weights * 100)
    found = errors_of(network, beam)
    for a, b in zip(found, standard_errors(network, beam.patterns), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_standard_errors_one_at_a_time_or_in_chunks(monkeypatch):
    """Too many parameters are taken as if the others were known: never less certain."""
    network = random_network(5, 5, 10, density=0.4, n_classes=1)
    beam = searched(network, sampled(network, 300), FINE)
    together = errors_of(network, beam)
    with monkeypatch.context() as patch:
        patch.setattr(_beam, "CHUNK_ELEMENTS", 1)
        for a, b in zip(errors_of(network, beam), together, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
    monkeypatch.setattr(_maximum_likelihood, "MOST_TOGETHER", 0)
    alone = errors_of(network, beam)
    assert (alone[0] <= together[0] + 1e-12).all()
    edges = network.structure
    assert (alone[1][edges] <= together[1][edges] + 1e-12).all()
    assert np.isnan(alone[1][~edges]).all()


@pytest.mark.parametrize("weight", [1.0, 1e9])
def test_pseudo_rows_keep_failures_of_few_rows_from_0_and_1(weight):
    network = random_network(7, 3, 9, density=0.7, n_classes=1)
    beam = searched(network, sampled(network, 15))
    beam.patterns = beam.patterns._replace(weights=beam.patterns.weights * weight)
    expected = beam.expect()
    plain, smooth = (maximize(network, expected, smooth=s) for s in (False, True))
    if weight > 1:
        np.testing.assert_allclose(smooth.failure, plain.failure, atol=1e-5)
        return
    edges = network.structure
    assert smooth.failure[edges].std() < plain.failure[edges].std()
    np.testing.assert_array_equal(smooth.structure, plain.structure)
    np.testing.assert_allclose(smooth.leak, plain.leak)
    np.testing.assert_allclose(smooth.prior, plain.prior)
