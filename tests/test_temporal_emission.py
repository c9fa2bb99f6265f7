"""Emissions: tables, their counts and their probabilities against plain loops."""

import numpy as np
import pytest

from sklearn_latent.temporal._emission import (
    SMOOTHING,
    Layout,
    code_counts,
    draw_codes,
    emission_log_prior,
    emission_score,
    log_probabilities,
    marginal_tables,
    n_free,
    predicted,
    state_counts,
    tables_from,
)
from sklearn_latent.temporal._panels.panel import Panel
from sklearn_latent.temporal._tables import family_score, free_parameters

CODES = np.array([[0, 2], [1, -1], [-1, 0], [0, 1]])
WIDTHS = [2, 3]


class TestLayout:
    def test_indicators(self):
        rows = Layout(WIDTHS).indicators(CODES).toarray()
        expected = [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0]]
        np.testing.assert_array_equal(rows, expected)

    def test_tables_of_features_sum_to_one(self):
        layout = Layout(WIDTHS)
        counts = np.arange(1.0, 11.0).reshape(2, 5)
        tables = layout.split(layout.normalized(counts))
        assert [table.shape for table in tables] == [(2, 2), (2, 3)]
        np.testing.assert_allclose(tables[0], [[1 / 3, 2 / 3], [6 / 13, 7 / 13]])
        np.testing.assert_allclose(tables[1].sum(axis=1), 1)

    def test_free_parameters_are_those_of_the_tables(self):
        layout = Layout(WIDTHS)
        tables = layout.split(np.ones((4, 5)))
        assert layout.n_free(4) == n_free(tables) == free_parameters(tables) == 4 * 3

    def test_no_feature(self):
        layout = Layout([])
        assert layout.split(np.ones((2, 0))) == []
        assert layout.indicators(np.zeros((3, 0), int)).shape == (3, 0)


class TestCounts:
    def test_every_feature_with_every_latent(self):
        rng = np.random.default_rng(0)
        states = [rng.random((4, 2)), rng.random((4, 3))]
        found = state_counts(CODES, states, WIDTHS)
        for f, width in enumerate(WIDTHS):
            for j, state in enumerate(states):
                expected = np.zeros((state.shape[1], width))
                for row, code in zip(state, CODES[:, f], strict=True):
                    if code >= 0:
                        expected[:, code] += row
                np.testing.assert_allclose(found[f][j], expected)

    def test_missing_values_do_not_count(self):
        weights = np.array([1.0, 2.0, 4.0, 8.0])
        assert code_counts(CODES[:, 0], weights, 2).tolist() == [[9.0, 2.0]]
        assert code_counts(CODES[:, 1], weights, 4).tolist() == [[4.0, 8.0, 1.0, 0.0]]

    def test_marginals_weigh_sequences(self):
        panel = Panel.of(CODES[:, None], WIDTHS, [1.0, 2.0, 4.0, 8.0])
        first, second = marginal_tables(panel)
        prior = SMOOTHING / np.array(WIDTHS)
        np.testing.assert_allclose(
            first, np.array([[9, 2]] + prior[0]) / (11 + SMOOTHING)
        )
        np.testing.assert_allclose(
            second, np.array([[4, 8, 1]] + prior[1]) / (13 + SMOOTHING)
        )

    def test_tables_maximize_the_posterior(self):
        counts, smoothing = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 2.0]]), 0.6

        def objective(table):
            value = (counts * np.log(table)).sum()
            return value + emission_log_prior([table], smoothing)

        (best,) = tables_from([counts], smoothing)
        rng = np.random.default_rng(1)
        for _ in range(20):
            noise = rng.dirichlet(np.ones(3), 2)
            assert objective(0.95 * best + 0.05 * noise) < objective(best)
        assert emission_log_prior([best], 0.0) == 0.0

    def test_score(self):
        counts = np.array([[3.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
        value = 3 * np.log(3 / 4) + np.log(1 / 4)
        found, free = family_score(counts)
        assert (found, free) == (pytest.approx(value), 3)
        assert emission_score(counts, 0.5) == pytest.approx(value - 1.5)


class TestProbabilities:
    table = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])

    def test_a_missing_value_is_certain(self):
        with np.errstate(divide="ignore"):
            expected = np.log([[0.5, 1.0, 0.0], [0.1, 1.0, 0.7]])
        np.testing.assert_allclose(
            log_probabilities(self.table, np.array([0, -1, 2])), expected
        )

    def test_predicted_is_a_mixture(self):
        posterior = [np.array([[[0.25, 0.75]]])]
        alone = np.array([[0.3, 0.7]])
        mixed, single = predicted([self.table, alone], [0, -1], posterior, (1, 1))
        np.testing.assert_allclose(mixed[0, 0], [0.2, 0.275, 0.525])
        np.testing.assert_allclose(single[0, 0], alone[0])

    def test_draws_have_the_probabilities_of_the_table(self):
        states = np.repeat([[0], [1]], 5000, axis=1)
        codes = draw_codes(self.table, states, np.random.RandomState(0))
        assert codes.shape == states.shape
        for row, probabilities in zip(codes, self.table, strict=True):
            shares = np.bincount(row, minlength=3) / row.size
            np.testing.assert_allclose(shares, probabilities, atol=0.03)
            assert (shares[probabilities == 0] == 0).all()
