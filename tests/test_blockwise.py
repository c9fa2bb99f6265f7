"""Gaussian networks and chains over blocks: the same model as in memory."""

import dask
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn
from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.gaussian._blockwise import (
    SplitStatistics,
    learn_statistics,
    mean_log_likelihood,
)
from sklearn_latent.gaussian._rounding import rounded
from sklearn_latent.temporal import LGLPCCTemporal
from sklearn_latent.temporal import _blockwise as panels
from sklearn_latent.temporal._em import fit_chain

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


def same_network(one, two):
    np.testing.assert_array_equal(one.adjacency_, two.adjacency_)
    for name in ("weights_", "intercept_", "noise_variance_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol=0, atol=1e-10
        )
    assert abs(one.bic_ - two.bic_) < 1e-6
    assert (one.search_, one.penalty_) == (two.search_, two.penalty_)


@pytest.fixture(scope="module")
def rows():
    return make_gaussian_bn(n_samples=1500, n_features=9, random_state=3).X


class TestGaussian:
    def test_batches_blocks_and_order(self, rows):
        whole = IdealParentGaussianBN(random_state=0).partial_fit(rows)
        batches = IdealParentGaussianBN(random_state=0)
        for start in range(0, len(rows), 400):
            batches.partial_fit(rows[start : start + 400], update=start >= 1200)
        same_network(whole, batches)
        blocks = IdealParentGaussianBN(random_state=0)
        same_network(whole, blocks.fit(da.from_array(rows, chunks=(333, 4))))
        # More rows after a fit, in memory or not.
        half = IdealParentGaussianBN(random_state=0).fit(rows[:800])
        same_network(whole, half.partial_fit(rows[800:]))
        order = np.random.default_rng(0).permutation(len(rows))
        same_network(
            whole, IdealParentGaussianBN(random_state=0).partial_fit(rows[order])
        )

    def test_likelihood_from_statistics(self, rows):
        model = IdealParentGaussianBN(random_state=0).partial_fit(rows)
        expected = model.network_.log_likelihood(rows).mean()
        found = mean_log_likelihood(model.network_, model._statistics.all)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        # BIC of equation 1 of the paper.
        cost = 0.5 * np.log(len(rows)) * model.network_.n_parameters
        np.testing.assert_allclose(model.bic_, expected * len(rows) - cost)

    def test_the_same_as_fit(self, rows):
        for search in ("auto", "order", "greedy"):
            model = IdealParentGaussianBN(search=search, random_state=0)
            same_network(clone(model).fit(rows), clone(model).partial_fit(rows))

    def test_weights_and_names(self, rows):
        weights = np.random.default_rng(0).integers(0, 3, len(rows))
        weighted = IdealParentGaussianBN(random_state=0).partial_fit(
            rows, sample_weight=weights
        )
        repeated = np.repeat(rows, weights, axis=0)
        same_network(
            weighted, IdealParentGaussianBN(random_state=0).partial_fit(repeated)
        )
        frame = pd.DataFrame(rows, columns=list("abcdefghi"))
        named = IdealParentGaussianBN(random_state=0).partial_fit(
            dd.from_pandas(frame, 3)
        )
        assert named.node_names_.tolist() == list("abcdefghi")
        blocks = da.from_array(rows, chunks=(500, 9))
        same_network(
            weighted,
            IdealParentGaussianBN(random_state=0).partial_fit(
                blocks, sample_weight=weights
            ),
        )

    def test_refused(self, rows):
        holes = rows.copy()
        holes[5, 2] = np.nan
        with pytest.raises(ValueError, match="no missing values"):
            IdealParentGaussianBN().partial_fit(holes)
        with pytest.raises(ValueError, match="no missing values"):
            IdealParentGaussianBN().partial_fit(da.from_array(holes, chunks=(500, 9)))
        blocks = da.from_array(rows, chunks=(500, 9))
        for settings in ({"max_hidden": 1}, {"link": "sigmoid"}):
            assert not hasattr(IdealParentGaussianBN(**settings), "partial_fit")
            with pytest.raises(ValueError, match="link must be 'linear'"):
                IdealParentGaussianBN(**settings).fit(blocks)

    def test_statistics_add_up(self, rows):
        one, two = SplitStatistics.of(rows[:700]), SplitStatistics.of(rows[700:])
        both, whole = one + two, SplitStatistics.of(rows)
        assert both.test.weight == whole.test.weight
        np.testing.assert_allclose(both.all.scatter, whole.all.scatter)
        # Rounding hides how they were summed.
        np.testing.assert_array_equal(
            rounded(both.all).scatter, rounded(whole.all).scatter
        )

    def test_few_rows(self):
        from sklearn_latent.gaussian._options import SearchOptions

        X = np.random.default_rng(0).normal(size=(6, 4))
        learned, options = learn_statistics(
            SplitStatistics.of(X), SearchOptions.free(4, search="auto", penalty="auto")
        )
        assert options.search == "order"
        assert np.isfinite(learned.network.weights).all()


@pytest.fixture(scope="module")
def sequences():
    data = make_latent_dbn("G1", 300, 4, random_state=0)
    return np.asarray(data.X).reshape(300, -1)


@pytest.fixture(scope="module")
def learner(sequences):
    return LGLPCCTemporal(n_slices=4, random_state=0).fit(sequences)


class TestChains:
    def test_blocks_climb_like_all_rows(self, sequences, learner):
        codes = learner._encode(sequences)
        start = learner.network_
        weights = np.random.default_rng(0).integers(1, 3, len(codes)).astype(float)
        expected, result = fit_chain(
            codes,
            learner._encoder.n_categories,
            start.graph,
            start.cardinality,
            sample_weight=weights,
            initial=start,
            max_iter=5,
            tol=0.0,
        )
        parts = [(codes[:100], weights[:100]), (codes[100:], weights[100:])]
        network, fitted = panels.climb_blocks(
            start, panels.LocalPanels(parts), max_iter=5, tol=0.0
        )
        assert fitted["n_iter_"] == result.n_iter
        np.testing.assert_allclose(fitted["log_likelihood_"], result.log_likelihood)
        for name in ("start", "transition", "emission"):
            for one, two in zip(
                getattr(network, name), getattr(expected, name), strict=True
            ):
                np.testing.assert_allclose(one, two, atol=1e-10)

    @pytest.mark.parametrize("kind", ["array", "frame"])
    def test_collection(self, sequences, kind, monkeypatch):
        def fit(blocks):
            with dask.config.set(scheduler="synchronous"):
                return LGLPCCTemporal(n_slices=4, random_state=0).fit(blocks)

        def split(n):
            if kind == "array":
                return da.from_array(sequences, chunks=(n, 5))
            return dd.from_pandas(pd.DataFrame(sequences).add_prefix("f"), chunksize=n)

        # Few sequences are fitted as they are.
        small = fit(split(100))
        whole = LGLPCCTemporal(n_slices=4, random_state=0).fit(
            sequences if kind == "array" else pd.DataFrame(sequences).add_prefix("f")
        )
        np.testing.assert_array_equal(small.measurement_, whole.measurement_)
        monkeypatch.setattr(panels, "MAX_SAMPLE", 150)
        one, two = fit(split(100)), fit(split(70))
        for first, second in zip(one.emission_, two.emission_, strict=True):
            np.testing.assert_allclose(first, second, atol=1e-10)
        # All sequences count in the end.
        sample = LGLPCCTemporal(n_slices=4, random_state=0).fit(
            sequences[(np.arange(150) * 300) // 150]
        )
        codes = sample._encode(sequences)
        better = one.network_.log_likelihood(codes).mean()
        assert better >= sample.network_.log_likelihood(codes).mean()

    def test_no_sequence(self):
        model = LGLPCCTemporal()
        with pytest.raises(ValueError, match="at least one sequence"):
            model.fit(da.zeros((0, 4)))
        assert not hasattr(model, "n_features_in_")
