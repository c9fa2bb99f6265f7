"""NoisyOrMoMLearner: from rows to a network, whatever the rows come in."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from strategies import with_parameters

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner, NoisyOrNetwork
from sklearn_latent.datasets import figure_1_structure, make_noisy_or
from sklearn_latent.exceptions import PoorDataWarning, UnidentifiableWarning
from sklearn_latent.noisy_or import _moment_plan as _plan

FIGURE_1 = figure_1_structure()


def figure_1_data(n_samples=5000, seed=0):
    return make_noisy_or(FIGURE_1, n_samples, leak=0.01, random_state=seed)


def wide_network(seed=0):
    """One component with more latents than exact likelihood can enumerate."""
    rng = np.random.default_rng(seed)
    structure = np.zeros((20, 60), dtype=bool)
    for row in structure:
        row[rng.choice(60, 8, replace=False)] = True
    return with_parameters(structure, seed, 0.1, 0.5)


def assert_same(one, two, atol=0.0):
    for name in ("prior_", "failure_", "leak_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol=0, atol=atol, err_msg=name
        )


def assert_valid(learner):
    for values in (learner.prior_, learner.failure_, learner.leak_):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert (values <= 1).all()


class TestAccuracy:
    @pytest.mark.parametrize("refine", [True, False])
    def test_error_falls_with_rows(self, refine):
        errors = []
        for n in (1_000, 100_000):
            total = 0.0
            for seed in range(8):
                data = figure_1_data(n, seed)
                learner = NoisyOrMoMLearner(FIGURE_1, refine=refine).fit(data.X)
                total += np.abs(learner.failure_ - data.network.failure).mean()
            errors.append(total)
        # Ten times smaller in theory; the plain estimator has heavy tails.
        assert errors[1] < errors[0] / 3

    def test_refined_is_the_maximum_likelihood_estimate(self):
        """No other start finds a better likelihood, at any number of rows."""
        for n, seed in ((200, 0), (1_000, 1), (10_000, 2)):
            data = figure_1_data(n, seed)
            refined = NoisyOrMoMLearner(FIGURE_1).fit(data.X)
            em = NoisyOrEM(structure=FIGURE_1, n_init=8, random_state=0).fit(data.X)
            assert refined.score(data.X) > em.score(data.X) - 1e-6

    def test_refinement_beyond_exact_likelihood(self):
        network = wide_network()
        X, _ = network.sample(10_000, random_state=0)
        plain = NoisyOrMoMLearner(network.structure, refine=False).fit(X)
        refined = NoisyOrMoMLearner(network.structure).fit(X)
        assert not refined._plan.parts
        error = [np.abs(m.failure_ - network.failure).mean() for m in (refined, plain)]
        assert error[0] < 0.75 * error[1]

    def test_overflowing_tables_fall_back_to_moments(self, monkeypatch):
        monkeypatch.setattr(_plan, "MAX_PATTERNS", 10)
        data = figure_1_data(20_000)
        learner = NoisyOrMoMLearner(FIGURE_1).fit(data.X)
        assert learner._statistics.tables == (None,)
        exact = np.abs(learner.failure_ - data.network.failure).max()
        assert exact < 0.2
        assert np.isfinite(learner.failure_stderr_[FIGURE_1]).all()

    def test_plain_estimator_uses_one_triplet_per_edge(self):
        learner = NoisyOrMoMLearner(FIGURE_1, refine=False).fit(figure_1_data().X)
        targets = [(s.latent, s.target) for s in learner.schedule_.steps]
        assert len(targets) == len(set(targets)) == FIGURE_1.sum()

    def test_column_permutation(self):
        data = figure_1_data()
        order = np.random.default_rng(0).permutation(5)
        one = NoisyOrMoMLearner(FIGURE_1).fit(data.X)
        two = NoisyOrMoMLearner(FIGURE_1[:, order]).fit(data.X[:, order])
        np.testing.assert_allclose(one.failure_[:, order], two.failure_, atol=1e-3)
        np.testing.assert_array_equal(one.depth_[:, order], two.depth_)

    def test_components_do_not_disturb_each_other(self):
        data = figure_1_data()
        other = figure_1_data(seed=1)
        both = np.kron(np.eye(2), FIGURE_1).astype(bool)
        joint = NoisyOrMoMLearner(both).fit(np.hstack([data.X, other.X]))
        alone = NoisyOrMoMLearner(FIGURE_1).fit(data.X)
        np.testing.assert_allclose(joint.failure_[:2, :5], alone.failure_, atol=1e-6)


class TestStandardErrors:
    @pytest.mark.parametrize("refine", [True, False])
    def test_intervals_cover(self, refine):
        hits = []
        for seed in range(40):
            data = figure_1_data(10_000, seed)
            learner = NoisyOrMoMLearner(FIGURE_1, refine=refine).fit(data.X)
            error = np.abs(learner.failure_ - data.network.failure)[FIGURE_1]
            hits.extend(error < 1.96 * learner.failure_stderr_[FIGURE_1])
            error = np.abs(learner.prior_ - data.network.prior)
            hits.extend(error < 1.96 * learner.prior_stderr_)
        assert 0.90 <= np.mean(hits) <= 0.98

    @pytest.mark.parametrize("refine", [True, False])
    def test_intervals_cover_in_large_components(self, refine):
        network = wide_network()
        hits = []
        for seed in range(4):
            X, _ = network.sample(10_000, random_state=seed)
            learner = NoisyOrMoMLearner(network.structure, refine=refine).fit(X)
            edges = network.structure
            error = np.abs(learner.failure_ - network.failure)[edges]
            hits.extend(error < 1.96 * learner.failure_stderr_[edges])
        assert 0.90 <= np.mean(hits) <= 0.98

    def test_shapes_and_gaps(self):
        learner = NoisyOrMoMLearner(FIGURE_1).fit(figure_1_data().X)
        assert learner.prior_stderr_.shape == (2,)
        np.testing.assert_array_equal(np.isnan(learner.failure_stderr_), ~FIGURE_1)


class TestRows:
    """The same rows in any form give the same model."""

    def test_partial_fit_is_fit_exactly(self):
        X = figure_1_data(20_000).X
        whole = NoisyOrMoMLearner(FIGURE_1).fit(X)
        parts = NoisyOrMoMLearner(FIGURE_1)
        for batch in np.array_split(X, [1, 700, 9000]):
            parts.partial_fit(batch, update=len(batch) > 1000)
        assert_same(whole, parts)
        np.testing.assert_array_equal(whole.failure_stderr_, parts.failure_stderr_)
        assert parts.n_samples_seen_ == 20_000

    def test_partial_fit_can_wait_with_the_solution(self):
        X = figure_1_data().X
        parts = NoisyOrMoMLearner(FIGURE_1)
        parts.partial_fit(X[:1000], update=False)
        assert not hasattr(parts, "network_")
        parts.partial_fit(X[1000:])
        assert_same(parts, NoisyOrMoMLearner(FIGURE_1).fit(X))

    def test_fit_forgets_what_came_before(self):
        X = figure_1_data().X
        learner = NoisyOrMoMLearner(FIGURE_1).partial_fit(X[:500]).fit(X)
        assert_same(learner, NoisyOrMoMLearner(FIGURE_1).fit(X))

    def test_partial_fit_in_a_large_component(self):
        network = wide_network()
        X, _ = network.sample(9_000, random_state=0)
        whole = NoisyOrMoMLearner(network.structure).fit(X)
        parts = NoisyOrMoMLearner(network.structure)
        assert_same(whole, parts.partial_fit(X[:4000]).partial_fit(X[4000:]))

    @pytest.mark.filterwarnings("ignore:X looks suspicious")
    @pytest.mark.parametrize("refine", [True, False])
    @pytest.mark.filterwarnings("ignore:.*ows of X re")
    def test_a_weight_of_two_is_a_row_twice(self, refine):
        X = figure_1_data(2000).X
        weights = np.random.default_rng(0).integers(0, 4, len(X))
        learner = NoisyOrMoMLearner(FIGURE_1, refine=refine)
        weighted = clone(learner).fit(X, sample_weight=weights)
        repeated = clone(learner).fit(np.repeat(X, weights, axis=0))
        assert_same(weighted, repeated)

    def test_order_of_rows_does_not_matter(self):
        X = figure_1_data().X
        shuffled = np.random.default_rng(0).permutation(X)
        assert_same(
            NoisyOrMoMLearner(FIGURE_1).fit(X),
            NoisyOrMoMLearner(FIGURE_1).fit(shuffled),
        )

    @pytest.mark.parametrize(
        "container",
        [
            sparse.csr_array,
            sparse.csc_matrix,
            sparse.coo_array,
            np.asfortranarray,
            lambda X: X.astype(bool),
            lambda X: X.astype(np.float32) * 7.5,
            lambda X: X.tolist(),
        ],
    )
    @pytest.mark.filterwarnings("ignore:X has poor columns.*are not binary")
    def test_containers(self, container):
        X = figure_1_data(2000).X
        dense = NoisyOrMoMLearner(FIGURE_1).fit(X)
        other = NoisyOrMoMLearner(FIGURE_1).fit(container(X))
        assert_same(dense, other)
        np.testing.assert_allclose(
            other.transform(container(X[:20])), dense.transform(X[:20])
        )

    def test_n_jobs(self):
        X = figure_1_data(40_000).X
        assert_same(
            NoisyOrMoMLearner(FIGURE_1).fit(X),
            NoisyOrMoMLearner(FIGURE_1, n_jobs=2).fit(X),
        )

    def test_structure_may_be_sparse(self):
        X = figure_1_data().X
        assert_same(
            NoisyOrMoMLearner(FIGURE_1).fit(X),
            NoisyOrMoMLearner(sparse.csr_array(FIGURE_1)).fit(X),
        )

    @pytest.mark.parametrize("refine", [True, False])
    def test_missing_at_random(self, refine):
        data = figure_1_data(50_000)
        X = data.X.astype(float)
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
        learner = NoisyOrMoMLearner(FIGURE_1, refine=refine).fit(X)
        assert np.abs(learner.failure_ - data.network.failure).max() < 0.15
        assert learner.transform(X).shape == (50_000, 2)
        assert np.isfinite(learner.score(X))

    def test_dask_array(self):
        da = pytest.importorskip("dask.array")
        X = figure_1_data(3000).X
        whole = NoisyOrMoMLearner(FIGURE_1).fit(X)
        blocks = da.from_array(X, chunks=(700, 2))
        with joblib.parallel_config(backend="threading"):
            assert_same(whole, NoisyOrMoMLearner(FIGURE_1).fit(blocks))
        weights = np.random.default_rng(0).integers(0, 3, len(X))
        assert_same(
            NoisyOrMoMLearner(FIGURE_1).fit(X, sample_weight=weights),
            NoisyOrMoMLearner(FIGURE_1).fit(blocks, sample_weight=weights),
        )

    def test_dask_frame_keeps_names(self):
        dd = pytest.importorskip("dask.dataframe")
        frame = pd.DataFrame(figure_1_data(3000).X, columns=list("abcde"))
        blocks = dd.from_pandas(frame, npartitions=4)
        learner = NoisyOrMoMLearner(FIGURE_1).fit(blocks)
        assert learner.feature_names_in_.tolist() == list("abcde")
        assert_same(learner, NoisyOrMoMLearner(FIGURE_1).fit(frame))
        with pytest.raises(ValueError, match="sample_weight must be None"):
            learner.fit(blocks, sample_weight=np.ones(len(frame)))


class TestEcosystem:
    def test_names_come_through(self):
        X = figure_1_data().X
        frame = pd.DataFrame(X, columns=list("abcde"))
        learner = NoisyOrMoMLearner(FIGURE_1).set_output(transform="pandas").fit(frame)
        out = learner.transform(frame)
        assert out.columns.tolist() == ["latent0", "latent1"]
        assert set(learner.to_frame()["child"]) == set("abcde")
        polars = NoisyOrMoMLearner(FIGURE_1).fit(pl.DataFrame(frame.to_dict("list")))
        assert polars.feature_names_in_.tolist() == list("abcde")
        assert_same(learner, polars)

    def test_pipeline_union_and_search(self):
        data = figure_1_data(3000)
        y = data.Z[:, 0]
        features = FeatureUnion(
            [
                ("latent", NoisyOrMoMLearner(FIGURE_1)),
                ("raw", FunctionTransformer(feature_names_out="one-to-one")),
            ]
        )
        model = Pipeline([("features", features), ("classify", LogisticRegression())])
        assert model.fit(data.X, y).score(data.X, y) > 0.6
        search = GridSearchCV(
            NoisyOrMoMLearner(FIGURE_1), {"refine": [True, False]}, cv=3, n_jobs=2
        )
        assert np.isfinite(search.fit(data.X).best_score_)
        assert np.isfinite(cross_val_score(NoisyOrMoMLearner(FIGURE_1), data.X)).all()

    def test_metadata_routing_of_weights(self):
        X = figure_1_data(2000).X
        weights = np.random.default_rng(0).integers(0, 3, len(X))
        with config_context(enable_metadata_routing=True):
            step = NoisyOrMoMLearner(FIGURE_1).set_fit_request(sample_weight=True)
            routed = Pipeline([("learn", step)]).fit(X, sample_weight=weights)[0]
        assert_same(routed, NoisyOrMoMLearner(FIGURE_1).fit(X, sample_weight=weights))

    def test_pickle_and_clone(self):
        X = figure_1_data().X
        learner = NoisyOrMoMLearner(FIGURE_1).fit(X)
        again = pickle.loads(pickle.dumps(learner))
        assert_same(learner, again)
        np.testing.assert_array_equal(learner.transform(X), again.transform(X))
        np.testing.assert_array_equal(learner.failure_stderr_, again.failure_stderr_)
        assert_same(again.partial_fit(X[:99]), learner.partial_fit(X[:99]))
        assert not hasattr(clone(learner), "network_")

    def test_inference_is_the_networks_own(self):
        data = figure_1_data()
        learner = NoisyOrMoMLearner(FIGURE_1).fit(data.X)
        np.testing.assert_array_equal(
            learner.transform(data.X), learner.network_.posterior(data.X)
        )
        np.testing.assert_allclose(
            learner.score_samples(data.X), learner.network_.log_likelihood(data.X)
        )
        n_parameters = 2 + 7 + 5
        log_likelihood = learner.score(data.X) * len(data.X)
        assert learner.aic(data.X) == pytest.approx(2 * (n_parameters - log_likelihood))
        assert learner.bic(data.X) == pytest.approx(
            n_parameters * np.log(len(data.X)) - 2 * log_likelihood
        )
        X, Z = learner.sample(7, random_state=0)
        assert X.shape == (7, 5)
        assert Z.shape == (7, 2)

    def test_exports(self):
        learner = NoisyOrMoMLearner(FIGURE_1).fit(figure_1_data().X)
        assert learner.to_networkx().number_of_edges() == 7
        assert len(learner.to_frame()) == 7
        assert learner.to_pgmpy().check_model()
        assert learner.plot().ax_ is not None

    def test_progress(self, capsys):
        NoisyOrMoMLearner(FIGURE_1, verbose=1).fit(figure_1_data().X)
        printed = capsys.readouterr().out
        assert "[NoisyOrMoMLearner] counted" in printed
        assert "refined" in printed


def test_clean_up_learns_what_the_schedule_cannot():
    """Two latents with 61 children each, 60 of them shared."""
    structure = np.ones((2, 62), dtype=bool)
    structure[0, -1] = structure[1, 0] = False
    network = with_parameters(structure, 3)
    X, _ = network.sample(100_000, random_state=0)
    with pytest.warns(UnidentifiableWarning):
        learner = NoisyOrMoMLearner(structure, refine=False).fit(X)
    assert np.abs(learner.failure_ - network.failure)[structure].mean() < 0.05


def test_one_latent_is_a_mixture_of_two_products():
    rng = np.random.default_rng(0)
    network = NoisyOrNetwork([0.3], rng.uniform(0.1, 0.6, (1, 8)), np.full(8, 0.1))
    X, _ = network.sample(5000, random_state=0)
    with pytest.warns(PoorDataWarning, match="behind all 8.*QuartetStructureLearner"):
        NoisyOrMoMLearner().fit(X)
    learner = NoisyOrMoMLearner(np.ones((1, 8))).fit(X)
    assert np.abs(learner.prior_ - 0.3).max() < 0.05
    assert np.abs(learner.failure_ - network.failure).max() < 0.1
