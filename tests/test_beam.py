"""Beams: what the kept states say of each row."""

import numpy as np
import pytest
from beams import EVERYTHING, cases, read, sampled, searched
from brute_force import class_joint, joint, random_network, states
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent.noisy_or import _beam
from sklearn_latent.noisy_or._beam import NARROW, Beam, Width


def by_row(beam):
    """States of each row, with their log P(row, state)."""
    found = [{} for _ in range(beam.n_rows)]
    for row, state, value in zip(beam.row, beam.states, beam.log_joint, strict=True):
        assert tuple(state) not in found[row], "a state twice"
        found[row][tuple(state)] = value
    return found


@settings(max_examples=40, deadline=None)
@given(cases())
def test_all_states_are_brute_force(case):
    network, X = case
    beam = searched(network, X)
    table, Z = joint(network, X)
    for found, expected in zip(by_row(beam), np.log(table), strict=True):
        assert len(found) == len(Z)
        values = [found[tuple(state == 1)] for state in Z]
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
    total = table.sum(axis=1)
    np.testing.assert_allclose(beam.log_likelihood, np.log(total), atol=1e-9)
    posterior = table @ Z / total[:, np.newaxis]
    np.testing.assert_allclose(beam.posterior, posterior, atol=1e-9)
    np.testing.assert_allclose(beam.per_row(beam.share), 1.0)
    of_class = class_joint(network, Z)
    classes = table @ (of_class / of_class.sum(axis=0)).T / total[:, np.newaxis]
    np.testing.assert_allclose(beam.class_posterior, classes, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(cases(), st.floats(1e-3, 0.5), st.integers(1, 8))
def test_fewer_states_are_a_lower_bound(case, least, most):
    network, X = case
    width = Width(least, least, most)
    beam = searched(network, X, width)
    table, Z = joint(network, X)
    number = {tuple(state == 1): k for k, state in enumerate(Z)}
    for row, found in enumerate(by_row(beam)):
        assert 1 <= len(found) <= most
        values = np.array(list(found.values()))
        expected = [np.log(table[row, number[state]]) for state in found]
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
        kept = np.logaddexp.reduce(values)
        assert beam.log_likelihood[row] == pytest.approx(kept)
    assert (beam.log_likelihood <= np.log(table.sum(axis=1)) + 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(cases(n_latents=(0, 4)))
def test_switch_gains_are_differences(case):
    network, X = case
    beam = searched(network, X)
    gains = beam.switch_gains(np.arange(len(beam.row)))
    found = by_row(beam)
    for row, state, gain in zip(beam.row, beam.states, gains, strict=True):
        for latent in range(network.n_latents):
            switched = state.copy()
            switched[latent] ^= True
            expected = found[row][tuple(switched)] - found[row][tuple(state)]
            assert gain[latent] == pytest.approx(expected, abs=1e-7)


def larger(n_latents=12, n_features=30, n_rows=60, *, missing=0.0, n_classes=2):
    """Coupled latents, too many states to keep, and rows of theirs."""
    network = random_network(3, n_latents, n_features, density=0.3, n_classes=n_classes)
    return network, sampled(network, n_rows, missing)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_rows_do_not_influence_each_other(missing):
    network, X = larger(missing=missing)
    every = by_row(searched(network, X, NARROW))
    chosen = [40, 3, 17]
    some = by_row(searched(network, X[chosen], NARROW))
    for number, found in zip(chosen, some, strict=True):
        assert found.keys() == every[number].keys()
        np.testing.assert_allclose(
            list(found.values()), list(every[number].values()), rtol=1e-12
        )


def test_chunks_do_not_matter(monkeypatch):
    network, X = larger()
    before = searched(network, X, NARROW)
    gains = before.switch_gains(np.arange(len(before.row)))
    monkeypatch.setattr(_beam, "CHUNK_ELEMENTS", 1)
    after = searched(network, X, NARROW)
    np.testing.assert_array_equal(after.states, before.states)
    np.testing.assert_allclose(after.log_joint, before.log_joint, rtol=1e-12)
    np.testing.assert_allclose(
        after.switch_gains(np.arange(len(after.row))), gains, atol=1e-9
    )


def test_wider_beams_hold_more():
    network, X = larger(n_latents=10, n_rows=20)
    widths = [Width(least, least, 1 << 12) for least in (1e-1, 1e-2, 1e-3)]
    values = [
        searched(network, X, width).log_likelihood.sum()
        for width in (*widths, EVERYTHING)
    ]
    assert (np.diff(values) > 0).all()
    assert values[-1] == pytest.approx(network.log_likelihood(X).sum())


def test_update_follows_and_search_finds_again():
    """States at hand are evaluated anew, and searches forget none that matters."""
    network, X = larger()
    beam = searched(network, X, NARROW)
    moved = network._with(leak=0.9 * network.leak, failure=network.failure**1.1)
    followed = beam.update(moved)
    assert followed == pytest.approx(beam.patterns.weights @ beam.log_likelihood)
    fresh = Beam(beam.patterns, network.n_latents, NARROW)
    assert followed == pytest.approx(fresh.search(moved), rel=1e-3)
    assert beam.search(moved) >= followed - 1e-9


def test_latents_come_and_go():
    network, X = larger(n_latents=4, n_features=8)
    patterns = read(network, X)
    beam = searched(network, X)
    before = beam.log_likelihood

    # A latent without children changes nothing, and doubles the states.
    beam.add(1)
    assert beam.states.shape[1] == 5
    assert not beam.states[:, -1].any()
    grown = network._with_latents(0.3, np.ones((1, 8)))
    beam.search(grown)
    np.testing.assert_allclose(beam.log_likelihood, before, atol=1e-9)
    np.testing.assert_allclose(beam.posterior[:, -1], 0.3, atol=1e-9)
    assert len(beam.row) == len(X) * 2**5

    # What is left of a network is the network of what is left.
    kept = np.array([0, 2])
    beam.keep(kept)
    beam.search(grown._keep(kept))
    fresh = Beam(patterns, 2, EVERYTHING)
    fresh.search(network._keep(kept))
    assert len(beam.row) == len(X) * 2**2
    np.testing.assert_allclose(beam.log_likelihood, fresh.log_likelihood, atol=1e-9)
    by_row(beam)


def test_snapshots_undo_everything():
    network, X = larger()
    beam = searched(network, X, NARROW)
    snapshot = beam.snapshot()
    names = ("row", "states", "log_joint", "share", "starts", "log_likelihood")
    copies = {name: getattr(beam, name).copy() for name in names}
    value = beam.patterns.weights @ beam.log_likelihood
    beam.add(1)
    beam.keep(np.arange(3, 13))
    beam.search(network._with_latents(0.1, np.full((1, 30), 0.5))._keep(range(3, 13)))
    beam.restore(snapshot)
    for name in names:
        np.testing.assert_array_equal(getattr(beam, name), copies[name])
    assert beam.update(network) >= value - 1e-9


def test_no_latents():
    network = random_network(0, 0, 4, n_classes=1)
    beam = searched(network, states(4).astype(float))
    assert np.exp(beam.log_likelihood).sum() == pytest.approx(1.0)
    assert beam.posterior.shape == (16, 0)


def test_sparse_and_dense_structures_are_the_same(monkeypatch):
    network, X = larger()
    found = []
    for share in (0.0, 1.1):
        monkeypatch.setattr(_beam, "DENSE", share)
        found.append(searched(network, X, NARROW))
    np.testing.assert_array_equal(found[0].states, found[1].states)
    np.testing.assert_allclose(found[0].log_joint, found[1].log_joint, rtol=1e-12)
    for a, b in zip(*(beam.expect() for beam in found), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
