"""NoisyOrMoMLearner: from rows, in whatever form, to a network or a clear error."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from strategies import with_parameters

from sklearn_latent import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import figure_1_structure, make_noisy_or
from sklearn_latent.exceptions import (
    ModelMisfitWarning,
    PoorDataWarning,
    UnidentifiableWarning,
)
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
    @pytest.mark.parametrize("large", [False, True])
    def test_intervals_cover(self, refine, large):
        hits = []
        for seed in range(4 if large else 40):
            if large:
                network = wide_network()
                X, _ = network.sample(10_000, random_state=seed)
            else:
                data = figure_1_data(10_000, seed)
                network, X = data.network, data.X
            learner = NoisyOrMoMLearner(network.structure, refine=refine).fit(X)
            error = np.abs(learner.failure_ - network.failure)
            hits.extend((error < 1.96 * learner.failure_stderr_)[network.structure])
            if not large:
                error = np.abs(learner.prior_ - network.prior)
                hits.extend(error < 1.96 * learner.prior_stderr_)
        assert 0.90 <= np.mean(hits) <= 0.98

    def test_shapes_and_gaps(self):
        learner = NoisyOrMoMLearner(FIGURE_1).fit(figure_1_data().X)
        assert learner.prior_stderr_.shape == (2,)
        np.testing.assert_array_equal(np.isnan(learner.failure_stderr_), ~FIGURE_1)


class TestRows:
    """The same rows in any form give the same model."""

    @pytest.mark.parametrize("large", [False, True])
    def test_partial_fit_is_fit_exactly(self, large):
        network = wide_network() if large else figure_1_data(1).network
        X, _ = network.sample(9_000 if large else 20_000, random_state=0)
        whole = NoisyOrMoMLearner(network.structure).fit(X)
        parts = NoisyOrMoMLearner(network.structure)
        parts.partial_fit(X[:700], update=False)
        assert not hasattr(parts, "network_")
        for batch in np.array_split(X[700:], [1, 4000]):
            parts.partial_fit(batch, update=len(batch) > 1000)
        assert_same(whole, parts)
        np.testing.assert_array_equal(whole.failure_stderr_, parts.failure_stderr_)
        assert parts.n_samples_seen_ == len(X)
        # A fit forgets what came before.
        assert_same(parts.fit(X), whole)

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


def test_pickle_and_clone():
    X = figure_1_data().X
    learner = NoisyOrMoMLearner(FIGURE_1).fit(X)
    again = pickle.loads(pickle.dumps(learner))
    assert_same(learner, again)
    np.testing.assert_array_equal(learner.transform(X), again.transform(X))
    np.testing.assert_array_equal(learner.failure_stderr_, again.failure_stderr_)
    assert_same(again.partial_fit(X[:99]), learner.partial_fit(X[:99]))
    assert not hasattr(clone(learner), "network_")


@pytest.mark.parametrize(
    "learner",
    [
        NoisyOrMoMLearner(FIGURE_1, verbose=1),
        NoisyOrEM(2, verbose=1, random_state=0),
        QuartetStructureLearner(verbose=1),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_progress_is_printed(learner, capsys):
    learner.fit(figure_1_data(500).X)
    assert f"[{type(learner).__name__}]" in capsys.readouterr().out


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


class TestBadInput:
    @pytest.mark.parametrize(
        ("structure", "message"),
        [
            (
                np.ones((2, 4)),
                r"structure must have one column per feature.*5.*\(2, 4\)",
            ),
            ([[1, 1, 1, 0, 0], [0] * 5], "structure must give every latent.*latent 1"),
            ([[1, 1, 3, 0, 0]], "structure must hold booleans"),
        ],
    )
    def test_structure(self, structure, message):
        with pytest.raises(ValueError, match=message):
            NoisyOrMoMLearner(structure).fit(figure_1_data(50).X)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (-np.ones(50), "sample_weight must be non-negative.*-1"),
            (np.zeros(50), "sample_weight must not be all zero"),
            (np.ones(49), r"sample_weight must have one value per row.*\(49,\)"),
            (np.full(50, np.nan), "sample_weight must hold numbers, got NaN"),
            (np.full(50, 1e308), "sample_weight must be at most 1e.100.*1e.308"),
            (np.full(50, 1e-320), "sample_weight must not be all zero, or below"),
            ("balanced", "sample_weight must be an array of numbers, got .*balanced"),
        ],
    )
    def test_weights(self, weights, message):
        with pytest.raises(ValueError, match=message):
            NoisyOrMoMLearner(FIGURE_1).fit(figure_1_data(50).X, sample_weight=weights)

    def test_values(self):
        X = figure_1_data(2000).X.astype(float)
        learner = NoisyOrMoMLearner(FIGURE_1, binarize=None)
        assert_same(learner.fit(X), NoisyOrMoMLearner(FIGURE_1).fit(X))
        with pytest.raises(ValueError, match=r"0 and 1.*binarize=None.*value 2\."):
            learner.fit(X * 2)
        with pytest.raises(ValueError, match=r"0 and 1.*binarize=None.*0\.5"):
            learner.fit(sparse.csr_array(X * 0.5))
        with pytest.raises(ValueError, match="infinity"):
            learner.fit(np.where(X == 1, np.inf, X))
        with pytest.raises(ValueError, match="0 sample"):
            learner.fit(X[:0])
        with pytest.raises(ValueError, match="binarize must be at least 0 for sparse"):
            NoisyOrMoMLearner(FIGURE_1, binarize=-1.0).fit(sparse.csr_array(X))
        with pytest.raises(ValueError, match="got 'a' in column 0"):
            learner.fit([["a", "b", "c", "d", "e"]])

    @pytest.mark.parametrize("value", ["high", [0.5], np.nan])
    def test_binarize(self, value):
        with pytest.raises((ValueError, TypeError), match="binarize"):
            NoisyOrMoMLearner(FIGURE_1, binarize=value).fit(figure_1_data(50).X)

    def test_partial_fit_with_another_width(self):
        learner = NoisyOrMoMLearner(FIGURE_1).partial_fit(figure_1_data(2000).X)
        with pytest.raises(ValueError, match=r"4 features.*expecting 5"):
            learner.partial_fit(np.zeros((3, 4)))


class TestPoorData:
    def test_unreached_edges_are_named(self):
        structure = np.array([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]], dtype=bool)
        network = with_parameters(structure, 0)
        X, _ = network.sample(5000, random_state=0)
        with pytest.warns(
            UnidentifiableWarning, match=r"8 of 8 edges.*\(0, 0\), \(0, 1\)"
        ):
            learner = NoisyOrMoMLearner(structure, refine=False).fit(X)
        assert_valid(learner)
        assert np.isinf(learner.depth_[structure]).all()
        with pytest.warns(UnidentifiableWarning, match="left without effect"):
            left = NoisyOrMoMLearner(structure, refine=False, clean_up=False).fit(X)
        assert (left.failure_[structure] > 0.999).all()

    @pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
    @pytest.mark.parametrize("refine", [True, False])
    @pytest.mark.parametrize(
        "spoil",
        [
            lambda X: np.zeros_like(X),
            lambda X: np.ones_like(X),
            lambda X: X[:1],
            lambda X: X[:2],
            lambda X: np.hstack([X[:, :1]] * 5),
            lambda X: np.where(np.arange(5) == 2, 1, X),
            lambda X: np.where(np.arange(5) == 2, 0, X),
            lambda X: np.where(np.arange(5) == 2, np.nan, X),
            lambda X: np.full(X.shape, np.nan),
            lambda X: np.random.default_rng(0).integers(0, 2, X.shape),
            lambda X: 1 - X,
            lambda X: X * 1e300,
            lambda X: X * 1e-300,
        ],
    )
    def test_a_finite_model_whatever_the_rows(self, spoil, refine):
        X = spoil(figure_1_data(300).X.astype(float))
        for structure in (FIGURE_1, None, np.ones((3, 5)), np.eye(5)):
            learner = NoisyOrMoMLearner(structure, refine=refine).fit(X)
            assert_valid(learner)
            assert np.isfinite(learner.transform(X)).all()
            assert np.isfinite(learner.score(X))
            error = learner.failure_stderr_
            assert (error[np.isfinite(error)] >= 0).all()

    def test_independent_features_are_reported(self):
        X = np.random.default_rng(0).integers(0, 2, (400, 5))
        X[:, 3] = 0
        with (
            pytest.warns(PoorDataWarning, match="no dependence"),
            pytest.warns(PoorDataWarning, match="column x3 is never on"),
        ):
            NoisyOrMoMLearner(FIGURE_1).fit(X)

    @pytest.mark.parametrize("refine", [True, False])
    def test_columns_that_exclude_each_other_contradict_the_model(self, refine):
        """The published estimator was less likely than independent columns."""
        rng = np.random.default_rng(0)
        on = rng.random(500) < 0.5
        noise = rng.random((2, 500)) < 0.1
        X = np.column_stack([on, ~on, on ^ noise[0], ~on ^ noise[1]])
        with pytest.warns(ModelMisfitWarning, match="pairs of features differ"):
            NoisyOrMoMLearner(np.ones((1, 4)), refine=refine).fit(X)
