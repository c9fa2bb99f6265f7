"""Gaussian networks and chains over blocks: the same model as in memory."""

import copy
import pickle

import dask
import numpy as np
import pandas as pd
import pytest
from dbn_strategies import random_dbn
from recorder import Recorder
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent._tables.blocks import LocalBlocks
from sklearn_latent._tables.dask_blocks import DaskBlocks
from sklearn_latent._tables.thin import some_rows
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn
from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.gaussian._learn import log_likelihood
from sklearn_latent.gaussian._rows import Rows, RowSums
from sklearn_latent.gaussian._statistics import standardise
from sklearn_latent.mixed import SEMDBN, LGLPCCTemporal
from sklearn_latent.mixed import _lpcc as chains
from sklearn_latent.mixed._em.chain_em import EMOptions, climb_chain, fit_chain
from sklearn_latent.mixed._panels.panel import Panel
from sklearn_latent.mixed._panels.reading import encode_block

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
        # More rows after a fit, of which sums are enough.
        normal = IdealParentGaussianBN(margins="normal", random_state=0)
        half = clone(normal).fit(rows[:800]).partial_fit(rows[800:])
        same_network(normal.fit(rows), half)
        order = np.random.default_rng(0).permutation(len(rows))
        same_network(
            whole, IdealParentGaussianBN(random_state=0).partial_fit(rows[order])
        )

    def test_likelihood_from_statistics(self, rows):
        model = IdealParentGaussianBN(random_state=0).partial_fit(rows)
        plain = model.network_.with_margins(None)
        found = log_likelihood(plain, model._statistics)
        np.testing.assert_allclose(found, plain.log_likelihood(rows).sum(), rtol=1e-10)
        expected = model.network_.log_likelihood(rows).sum()
        np.testing.assert_allclose(model.log_likelihood_, expected, rtol=1e-10)
        np.testing.assert_allclose(model.bic_, model.bic(rows))

    def test_the_same_as_fit(self, rows):
        for search in ("auto", "order", "greedy"):
            model = IdealParentGaussianBN(search=search, random_state=0)
            same_network(clone(model).fit(rows), clone(model).partial_fit(rows))

    @pytest.mark.filterwarnings("ignore:X looks suspicious")
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
        for settings in ({"max_latents": 1}, {"link": "sigmoid"}):
            assert not hasattr(IdealParentGaussianBN(**settings), "partial_fit")
            with pytest.raises(ValueError, match="link must be 'linear'"):
                IdealParentGaussianBN(**settings).fit(blocks)

    def test_statistics_add_up(self, rows):
        both = RowSums.of(Rows(rows[:700])) + RowSums.of(Rows(rows[700:]))
        one, two = both.moments, RowSums.of(Rows(rows)).moments
        np.testing.assert_allclose(one.scatter, two.scatter)
        # Rounding hides how they were summed.
        np.testing.assert_array_equal(
            standardise(one)[0].scatter, standardise(two)[0].scatter
        )

    def test_few_rows(self):
        X = np.random.default_rng(0).normal(size=(6, 4))
        model = IdealParentGaussianBN().fit(X)
        assert model.search_ == "order"
        assert np.isfinite(model.weights_).all()


def chain_learner():
    return LGLPCCTemporal(n_slices=4, random_state=0)


def same_chain(one, two):
    assert one.graph_ == two.graph_
    for name in ("start_", "transition_", "emission_"):
        for first, second in zip(getattr(one, name), getattr(two, name), strict=True):
            np.testing.assert_allclose(first, second, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.log_likelihood_, two.log_likelihood_)
    assert one.n_iter_ == two.n_iter_


@pytest.fixture(scope="module")
def sequences():
    data = make_latent_dbn("G1", 300, 4, random_state=0)
    return np.asarray(data.X).reshape(300, -1)


@pytest.fixture(scope="module")
def learner(sequences):
    return chain_learner().fit(sequences)


class TestChains:
    @pytest.mark.parametrize("max_joint_states", [500, 1])
    def test_blocks_climb_like_all_rows(self, max_joint_states):
        data = make_latent_dbn("G3", 300, 4, random_state=0)
        codes = data.codes
        start = random_dbn(data.graph, [2, 3], [4] * 6, seed=0)
        weights = np.random.default_rng(0).integers(1, 3, len(codes)).astype(float)
        options = EMOptions(max_iter=5, tol=0.0, max_joint_states=max_joint_states)
        panel = Panel.of(codes, start.n_categories, weights)
        whole = fit_chain(panel, start.graph, start.cardinality, start, options)
        parts = [
            Panel(codes[rows], weights[rows], panel.n_categories)
            for rows in (slice(0, 100), slice(100, None))
        ]
        start.max_joint_states = max_joint_states
        blocks = climb_chain(start, LocalBlocks(parts), options)
        assert blocks.n_iter == whole.n_iter == 5
        np.testing.assert_allclose(blocks.objectives, whole.objectives)
        for name in ("start", "transition", "emission"):
            for one, two in zip(
                getattr(blocks.state, name), getattr(whole.state, name), strict=True
            ):
                np.testing.assert_allclose(one, two, atol=1e-10)

    @pytest.mark.parametrize("kind", ["array", "frame"])
    def test_few_sequences_are_fitted_as_they_are(self, sequences, kind):
        frame = pd.DataFrame(sequences).add_prefix("f")
        if kind == "array":
            blocks, whole = da.from_array(sequences, chunks=(70, 5)), sequences
        else:
            blocks, whole = dd.from_pandas(frame, chunksize=70), frame
        same_chain(chain_learner().fit(whole), chain_learner().fit(blocks))

    @pytest.mark.parametrize("kind", ["array", "frame"])
    def test_many_sequences(self, sequences, kind, monkeypatch):
        def split(n):
            if kind == "array":
                return da.from_array(sequences, chunks=(n, 5))
            return dd.from_pandas(pd.DataFrame(sequences).add_prefix("f"), chunksize=n)

        monkeypatch.setattr(chains, "MAX_SAMPLE", 150)
        with dask.config.set(scheduler="synchronous"):
            one, two = chain_learner().fit(split(100)), chain_learner().fit(split(70))
        same_chain(one, two)
        # All sequences count in the end.
        sample = chain_learner().fit(sequences[some_rows(300, 150)])
        codes = sample._encode(sequences)
        better = one.network_.log_likelihood(codes).mean()
        assert better >= sample.network_.log_likelihood(codes).mean()

    def test_weights(self, sequences, monkeypatch):
        weights = np.random.default_rng(0).integers(0, 3, len(sequences))
        blocks = da.from_array(sequences, chunks=(80, 12))
        same_chain(
            chain_learner().fit(sequences, sample_weight=weights),
            chain_learner().fit(blocks, sample_weight=weights),
        )
        # Of few sequences with a weight none is missed by the sample.
        monkeypatch.setattr(chains, "MAX_SAMPLE", 60)
        weights[100:] = 0
        model = chain_learner().fit(blocks, sample_weight=weights)
        assert model.n_latents_ == 1
        rest = da.from_array(sequences[:100], chunks=(80, 12))
        same_chain(model, chain_learner().fit(rest, sample_weight=weights[:100]))

    def test_interrupted(self, sequences, learner, monkeypatch):
        monkeypatch.setattr(chains, "MAX_SAMPLE", 150)
        fitted = copy.deepcopy(learner)
        before = dict(vars(fitted))
        steps = iter(range(2))
        total = DaskBlocks.sum

        def interrupt(self, *arguments):
            if next(steps, None) is None:
                raise KeyboardInterrupt
            return total(self, *arguments)

        monkeypatch.setattr(DaskBlocks, "sum", interrupt)
        blocks = da.from_array(sequences[:, :9], chunks=(100, 9))
        with pytest.raises(KeyboardInterrupt):
            fitted.set_params(n_slices=3).fit(blocks)
        fitted.set_params(n_slices=4)
        assert vars(fitted).keys() == before.keys()
        assert all(vars(fitted)[name] is before[name] for name in before)
        assert np.isfinite(fitted.score(sequences))

    def test_callbacks(self, sequences, monkeypatch):
        pytest.importorskip("sklearn.callback")
        monkeypatch.setattr(chains, "MAX_SAMPLE", 150)
        blocks = da.from_array(sequences, chunks=(100, 12))
        recorder, stopper = Recorder(), Recorder(stop=True)
        model = chain_learner().set_callbacks(recorder).fit(blocks)
        assert len(recorder.begun) >= 4 + model.n_iter_
        assert sorted(recorder.begun) == sorted(recorder.ended)
        assert recorder.torn_down == 1
        same_chain(model, chain_learner().fit(blocks))
        # Who asks to stop gets the model of the first step, and no warning.
        model = chain_learner().set_params(tol=0.0).set_callbacks(stopper).fit(blocks)
        assert model.n_iter_ == 1 and not model.converged_
        assert np.isfinite(model.score(sequences))
        failing = Recorder()
        with pytest.raises(ValueError, match="at least one sequence"):
            chain_learner().set_callbacks(failing).fit(da.zeros((0, 12)))
        assert failing.torn_down == 1

    @pytest.mark.parametrize("max_iter", [1, 3])
    def test_one_warning_of_steps(self, sequences, monkeypatch, capsys, max_iter):
        monkeypatch.setattr(chains, "MAX_SAMPLE", 150)
        model = chain_learner().set_params(max_iter=max_iter, tol=0.0, verbose=1)
        message = f"max_iter={max_iter} iterations"
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            model.fit(da.from_array(sequences, chunks=(100, 12)))
        assert len(caught) == 1
        printed = capsys.readouterr().out
        assert printed.count("log-likelihood") == 1
        assert printed.count("log-posterior") == max_iter

    def test_lost_worker(self, sequences, monkeypatch):
        distributed = pytest.importorskip("distributed")
        monkeypatch.setattr(chains, "MAX_SAMPLE", 150)
        blocks = da.from_array(sequences, chunks=(50, 12))
        expected = chain_learner().fit(blocks)
        total = DaskBlocks.sum
        lost = []

        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=False,
                dashboard_address=None,
            ) as cluster,
            distributed.Client(cluster),
        ):

            def lose_one(self, *arguments):
                if not lost:
                    # What is in its memory is gone, and computed again elsewhere.
                    distributed.wait(distributed.futures_of(self.parts))
                    lost.append(cluster.workers[0])
                    cluster.sync(lost[0].close, reason="test")
                return total(self, *arguments)

            monkeypatch.setattr(DaskBlocks, "sum", lose_one)
            same_chain(expected, chain_learner().fit(blocks))
        assert lost

    def test_workers_get_the_encoder_alone(self, sequences, learner):
        panel = encode_block(
            (sequences.reshape(300, 4, 3), None),
            pickle.loads(pickle.dumps(learner._encoder)),
        )
        expected = Panel.of(learner._encode(sequences), panel.n_categories).merged()
        np.testing.assert_array_equal(panel.codes, expected.codes)
        np.testing.assert_array_equal(panel.weights, expected.weights)

    def test_batches(self, sequences, learner, monkeypatch):
        def batches(n):
            return (sequences[i : i + n] for i in range(0, 300, n))

        same_chain(learner, chain_learner().fit(batches(70)))
        frame = pd.DataFrame(sequences).add_prefix("f")
        named = chain_learner().fit(iter([frame[:100], frame[100:]]))
        assert named.feature_names_in_.tolist() == frame.columns.tolist()
        same_chain(learner, named)
        panels = iter(np.split(sequences.reshape(300, 4, 3), 2))
        same_chain(learner, LGLPCCTemporal(random_state=0).fit(panels))
        # Structure from a sample, tables from all sequences.
        monkeypatch.setattr(chains, "MAX_SAMPLE", 150)
        blocks = da.from_array(sequences, chunks=(100, 12))
        same_chain(chain_learner().fit(blocks), chain_learner().fit(batches(70)))

    def test_refused_batches(self, sequences):
        wide = sequences.reshape(300, 4, 3)
        for batches, weights, message in (
            ([], None, "at least one batch"),
            ([sequences, sequences[:, :9]], None, "9 features.*12 features"),
            ([wide, wide[:, :2]], None, "same shape in all batches"),
            ([sequences], np.ones(300), "sample_weight must be None"),
        ):
            model = LGLPCCTemporal(4)
            with pytest.raises(ValueError, match=message):
                model.fit(iter(batches), sample_weight=weights)
            assert vars(model) == vars(LGLPCCTemporal(4))

    def test_structural_em_reads_all_blocks(self, sequences):
        def learner():
            return SEMDBN(1, 2, 4, n_init=1, random_state=0)

        model = learner().fit(sequences)
        blocks = learner().fit(da.from_array(sequences, chunks=(100, 12)))
        batches = learner().fit(iter(np.split(sequences, 3)))
        assert model.bic_ == blocks.bic_ == batches.bic_

    def test_refused(self, sequences):
        model = LGLPCCTemporal()
        unknown = da.from_array(sequences, chunks=(100, 12))
        unknown = unknown[unknown[:, 0] >= 0]
        assert np.isnan(unknown.shape[0])
        same_chain(chain_learner().fit(unknown), chain_learner().fit(sequences))
        narrow = dask.delayed(sequences[:50, :8])
        wide = dask.delayed(sequences[:50])
        frames = [pd.DataFrame(sequences[:50]).add_prefix(p) for p in "fg"]
        array, shape = da.from_delayed, (50, 12)
        for blocks, weights, message in (
            (da.zeros((0, 4)), None, "at least one sequence"),
            (unknown, np.ones(300), "compute_chunk_sizes"),
            (
                array(wide, (np.nan, np.nan), dtype=int),
                None,
                "known number of columns",
            ),
            (
                da.concatenate([array(b, shape, dtype=int) for b in (wide, narrow)]),
                None,
                r"12 columns in all blocks, got a block of shape \(50, 8\)",
            ),
            (
                array(wide, (40, 12), dtype=int),
                np.ones(40),
                "its chunks say, 40 rows, got 50",
            ),
            (
                dd.from_delayed(
                    [dask.delayed(f) for f in frames], meta=frames[0], verify_meta=False
                ),
                None,
                "same columns in all blocks",
            ),
            (da.zeros((5, 2, 2)), None, "two dimensions"),
            (da.zeros(5), None, "two dimensions"),
            (da.zeros((5, 4)), np.zeros(5), "not be all zero"),
        ):
            with pytest.raises(ValueError, match=message):
                model.fit(blocks, sample_weight=weights)
            assert vars(model) == vars(LGLPCCTemporal())
