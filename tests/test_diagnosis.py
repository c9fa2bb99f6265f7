"""Diagnosis: quiet on rows that follow the model, loud and specific on others."""

import warnings

import numpy as np
import pandas as pd
import pytest
from brute_force import class_networks, random_network, states
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from sklearn_latent import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent._answers.diagnosis import diagnose as diagnose_subject
from sklearn_latent._answers.statistics import row_limit
from sklearn_latent._answers.summary import diagnosis_section
from sklearn_latent._core.checks import Check, count_z, critical_z, table_z
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.noisy_or._misfit import (
    complete,
    contradictions,
    contradictions_of_moments,
    misfit_message,
    subject_of,
    thin_out,
)
from sklearn_latent.noisy_or._statistics.gaps import Gaps
from sklearn_latent.noisy_or._statistics.moments import NegativeMoments, canonical_sets
from sklearn_latent.noisy_or._statistics.packed import PackedRows
from sklearn_latent.noisy_or._statistics.patterns import Patterns

COLUMNS = ["check", "what", "observed", "expected", "z", "ok"]
BLOCKS = np.kron(np.eye(3, dtype=bool), np.ones((1, 6), dtype=bool))
TRUTH = NoisyOrNetwork([0.2, 0.3, 0.25], np.where(BLOCKS, 0.3, 1.0), np.full(18, 0.05))

EVERY_ESTIMATOR = pytest.mark.parametrize(
    "model",
    [
        NoisyOrMoMLearner(BLOCKS),
        NoisyOrEM(structure=BLOCKS, random_state=0),
        QuartetStructureLearner(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)


def names_of(network):
    features = [f"x{j}" for j in range(network.n_features)]
    return features, [f"latent{k}" for k in range(network.n_latents)]


def diagnose(network, X):
    patterns = Patterns.of(X)
    return diagnose_subject(subject_of(network, patterns, *names_of(network)))


def failing(frame):
    return set(frame.check[~frame.ok])


def noisy_or_rows(Z, rng):
    """Features of given latents, as in `TRUTH`."""
    off = 0.95 * np.where(Z[:, :, np.newaxis] & BLOCKS, 0.3, 1.0).prod(axis=1)
    return rng.random(off.shape) > off


def exclusive_causes(rng, n):
    return noisy_or_rows(np.eye(3, dtype=bool)[rng.integers(0, 3, n)], rng)


def correlated_causes(rng, n):
    shared = 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, 3))
    return noisy_or_rows(shared > 0.7, rng)


def chain(rng, n):
    X = np.zeros((n, 18), dtype=bool)
    X[:, 0] = rng.random(n) < 0.4
    for j in range(1, 18):
        X[:, j] = rng.random(n) < np.where(X[:, j - 1], 0.75, 0.2)
    return X


def latent_classes(rng, n):
    chance = rng.uniform(0.05, 0.9, (6, 18))
    return rng.random((n, 18)) < chance[rng.integers(0, 6, n)]


def item_response(rng, n):
    ability = 1.5 * rng.normal(size=(n, 1)) + rng.normal(size=24)
    return rng.random((n, 24)) < 1 / (1 + np.exp(-ability))


@settings(deadline=None)
@given(
    one=st.floats(0.05, 0.95),
    two=st.floats(0.05, 0.95),
    share=st.floats(0.05, 0.95),
    expected=st.floats(-0.6, 0.6),
)
def test_pairs_of_shares_are_judged_given_the_rates(one, two, share, expected):
    """Against the normal approximation, in many rows, and in either coding."""
    n, scale = 10_000_000, np.sqrt(one * (1 - one) * two * (1 - two))
    least, most = max(one + two - 1, 0), min(one, two)
    both = np.clip(one * two + expected * scale, least, most)
    assume(min(both - least, most - both) > 0.01)
    seen = both + (share - 0.5) * 1e-3
    r = (np.array([p]) - one * two for p in (seen, both))
    r = [gap / scale for gap in r]
    z = table_z(*r, np.array([one]), np.array([two]), n)
    cells = np.array([both, one - both, two - both, 1 - one - two + both])
    rough = (seen - both) * np.sqrt(n * (1 / cells).sum())
    assert z == pytest.approx(rough, rel=0.02, abs=0.05)
    turned = table_z(-r[0], -r[1], np.array([one]), np.array([1 - two]), n)
    assert turned == pytest.approx(-z, rel=0.02, abs=0.05)


@settings(max_examples=40, deadline=None)
@given(network=class_networks)
def test_modelled_pairs_are_those_of_all_rows(network):
    """Exact shares of all rows contradict nothing."""
    X = states(network.n_features)
    weights = 10_000.0 * np.exp(network.log_likelihood(X))
    patterns = Patterns.of(X.astype(bool), weights)
    assert contradictions(network, patterns, names_of(network)[0]) == []


@settings(deadline=None)
@given(
    n=st.integers(1, 60), p=st.floats(0.01, 0.99), share=st.floats(0, 1), data=st.data()
)
def test_counts_are_judged_by_binomial_tails(n, p, share, data):
    count = round(share * n)
    z = float(count_z(count, n * p, n * p * (1 - p)))
    if count > n * p:
        assert stats.norm.sf(z) == pytest.approx(
            min(0.5, stats.binom.sf(count - 1, n, p)), rel=1e-6
        )
    elif count < n * p:
        assert stats.norm.cdf(z) == pytest.approx(
            min(0.5, stats.binom.cdf(count, n, p)), rel=1e-6
        )


def test_certain_counts():
    np.testing.assert_array_equal(count_z([0.0, 5.0], [0.0, 5.0], [0.0, 0.0]), 0.0)
    assert count_z(3.0, 0.0, 0.0) > 100
    assert count_z(3.0, 5.0, 0.0) < -100


def test_limits_grow_with_the_number_of_tests():
    assert critical_z(1, 1) == pytest.approx(1.95996, abs=1e-4)
    assert critical_z(1, 1, two_sided=False) == pytest.approx(1.64485, abs=1e-4)
    assert critical_z(100, 5) > critical_z(10, 5) > critical_z(1, 5)
    assert critical_z(0, 5) == critical_z(1, 5)


@pytest.mark.parametrize(("n", "gaps"), [(100, 0.0), (1500, 0.0), (1500, 0.3)])
def test_tables_that_follow_the_model_pass(n, gaps):
    """About 5% of them may fail; 2% do."""
    failures = 0
    for seed in range(40):
        X = TRUTH.sample(n, random_state=seed)[0].astype(float)
        X[np.random.default_rng(seed).random(X.shape) < gaps] = np.nan
        failures += not diagnose(TRUTH, X).ok.all()
    assert failures <= 4


def hide(X, rng, cause=0):
    """Two features are missing where another one is on."""
    X = X.astype(float)
    large = X[:, [cause]] == 1
    X[:, 1:3][rng.random((len(X), 2)) < np.where(large, 0.8, 0.05)] = np.nan
    return X


@settings(max_examples=8, deadline=None)
@given(
    network=st.builds(
        random_network,
        seed=st.integers(0, 999),
        n_latents=st.integers(1, 3),
        n_features=st.integers(3, 5),
        n_classes=st.integers(1, 3),
    )
)
def test_completed_rows_follow_the_network(network):
    """Though values are missing where another is large."""
    X = states(network.n_features)
    drawn = network.sample(8000, random_state=0)[0]
    patterns = Patterns.of(hide(drawn, np.random.default_rng(0)))
    filled = complete(network, patterns)
    assert filled.observed is None
    assert filled.weights.sum() == 8000
    for rows in (Patterns.of(drawn), filled):
        share = np.zeros(len(X))
        for row, weight in zip(rows.on, rows.weights, strict=True):
            share[(row == X).all(axis=1)] += weight / 8000
        expected = np.exp(network.log_likelihood(X))
        error = np.sqrt(expected * (1 - expected) / 8000)
        assert (np.abs(share - expected) < 5.0 * error + 1e-3).all()


@EVERY_ESTIMATOR
def test_values_missing_at_random_condemn_no_right_model(model):
    """Neither `diagnose` nor `fit`, whose warnings are errors here."""
    failures = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = hide(TRUTH.sample(1000, random_state=seed)[0], rng)
        failures += not model.fit(X).diagnose(X).ok.all()
    assert failures <= 1  # 2 or more of 5 have a probability of 2.3%


class TestGaps:
    """Moments of rows that have certain features take them for rows like others."""

    @pytest.mark.parametrize(
        "model",
        [
            NoisyOrMoMLearner(BLOCKS, refine=False),
            QuartetStructureLearner(refine=False, random_state=0),
        ],
        ids=lambda model: type(model).__name__,
    )
    @pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.ModelMisfitWarning")
    def test_what_gaps_depend_on_is_said(self, model):
        X = TRUTH.sample(2000, random_state=0)[0]
        with pytest.warns(
            PoorDataWarning, match="value is missing depends on.*x[12] on"
        ):
            model.fit(hide(X, np.random.default_rng(0)))

    def test_few_are_accused_where_gaps_depend_on_nothing(self):
        accused = 0
        for seed in range(60):
            X = TRUTH.sample(300, random_state=seed)[0].astype(float)
            X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                Gaps.of(Patterns.of(X)).warn([f"x{j}" for j in range(18)])
            accused += bool(caught)
        assert accused <= 7  # 8 or more of 60 have a probability of 1.0%

    def test_counts_of_batches_add_up(self):
        X = hide(TRUTH.sample(400, random_state=0)[0], np.random.default_rng(0))
        X[200:] = np.nan_to_num(X[200:])
        both = Gaps.of(Patterns.of(X[:200])) + Gaps.of(Patterns.of(X[200:]))
        whole = Gaps.of(Patterns.of(X))
        np.testing.assert_allclose(both.known, whole.known)
        np.testing.assert_allclose(both.on, whole.on)


def test_new_rows_pass_although_the_model_is_not_the_truth():
    failures = dict.fromkeys((False, True), 0)
    for seed in range(15):
        X = TRUTH.sample(1000, random_state=seed)[0]
        new = TRUTH.sample(2000, random_state=100 + seed)[0]
        model = NoisyOrMoMLearner(BLOCKS).fit(X)
        failures[True] += not model.diagnose(new).ok.all()
        failures[False] += not diagnose(model.network_, new).ok.all()
    # If the model were the truth, many of the new tables would not fit it.
    assert failures[True] <= 2 < failures[False]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (exclusive_causes, {"negative dependence", "dependent latents"}),
        (correlated_causes, {"dependent latents"}),
        (chain, {"pair"}),
        (latent_classes, {"negative dependence"}),
        (item_response, {"row total"}),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.ModelMisfitWarning")
def test_violations_are_named(make, expected):
    X = make(np.random.default_rng(0), 5000)
    model = NoisyOrEM(n_latents=3, max_iter=200, tol=1e-4, random_state=0).fit(X)
    assert expected <= failing(model.diagnose(X))


def test_columns_that_point_the_other_way_are_named():
    X = TRUTH.sample(3000, random_state=0)[0]
    polarity = np.where(np.arange(18) % 3 == 0, -1, 1)
    X = np.where(polarity < 0, 1 - X, X)
    assert "negative dependence" in failing(diagnose(TRUTH, X))
    parameters = TRUTH.prior, TRUTH.failure, TRUTH.leak
    frame = diagnose(NoisyOrNetwork(*parameters, polarity=polarity), X)
    assert frame.ok.all()
    # The names say which column is read as its opposite, and counts when it is 0.
    parameters = TRUTH.prior, TRUTH.failure, np.full(18, 0.5)
    frame = diagnose(NoisyOrNetwork(*parameters, polarity=polarity), X)
    rates = frame[frame.check == "rate"]
    assert not rates.ok.any()
    assert (rates.z < 0).all()
    turned = {f"not x{j}" for j in np.flatnonzero(polarity < 0)}
    assert {what for what in rates.what if what.startswith("not ")} <= turned
    read = np.where(polarity < 0, 1 - X, X)
    np.testing.assert_allclose(
        rates.observed, [read[:, int(what.split("x")[1])].mean() for what in rates.what]
    )
    pairs = frame[frame.check == "pair"]
    assert pairs.what.str.contains("not x").any()


def test_near_duplicates_are_named():
    X = TRUTH.sample(2000, random_state=0)[0]
    X[:, 1] = X[:, 0]
    X[:5, 1] ^= 1
    frame = diagnose(TRUTH, X)
    lines = frame[frame.check == "near-duplicates"]
    assert lines.what.tolist() == ["x0, x1"]
    assert not lines.ok.any()
    assert "x0, x1" in set(frame.what[(frame.check == "pair") & ~frame.ok])
    # Three rows say nothing.
    few = np.zeros((500, 18), dtype=int)
    few[:3, :2] = 1
    assert "near-duplicates" not in set(diagnose(TRUTH, few).check)


def test_latents_that_no_row_reveals_are_named():
    failure = np.where(BLOCKS, 0.3, 1.0)
    failure[1][BLOCKS[1]] = 0.97
    network = NoisyOrNetwork(TRUTH.prior, failure, TRUTH.leak)
    X = network.sample(2000, random_state=0)[0]
    frame = diagnose(network, X)
    lines = frame[frame.check == "certainty"]
    assert lines.what.tolist() == ["latent1"]
    assert lines.observed.between(0, 0.1).all()
    # The model is right; the summary says that it is of little use.
    assert frame.ok.all()
    section = diagnosis_section(frame, "row")
    assert any("hardly ever certain" in line for line in section.lines)


def test_rows_twice_are_rows_of_twice_the_weight_in_any_order():
    X = TRUTH.sample(400, random_state=1)[0]
    names = names_of(TRUTH)
    twice = subject_of(TRUTH, Patterns.of(np.concatenate([X, X])), *names)
    heavy = subject_of(TRUTH, Patterns.of(X, np.full(400, 2.0)), *names)
    pd.testing.assert_frame_equal(diagnose_subject(twice), diagnose_subject(heavy))
    order = np.random.default_rng(0).permutation(400)
    pd.testing.assert_frame_equal(diagnose(TRUTH, X), diagnose(TRUTH, X[order]))


def test_many_rows_are_thinned_out():
    X = TRUTH.sample(3000, random_state=1)[0]
    patterns = Patterns.of(X, np.full(3000, 4.0))
    thin = thin_out(patterns, 1000)
    assert thin.weights.sum() == 1000
    rate = patterns.weights @ patterns.on / 12_000
    np.testing.assert_allclose(thin.weights @ thin.on / 1000, rate, atol=0.06)
    assert thin_out(patterns, 12_000) is patterns
    assert row_limit(100) == 5000
    assert row_limit(100_000) == 200
    assert row_limit(20, 500) < row_limit(20, 50) < 5000


@EVERY_ESTIMATOR
def test_all_estimators_diagnose_all_kinds_of_tables(model):
    X = TRUTH.sample(6000, random_state=3)[0]
    table = pd.DataFrame(X, columns=[f"item {j}" for j in range(18)])
    frame = model.fit(table).diagnose(table)
    assert list(frame.columns) == COLUMNS
    assert frame.ok.dtype.kind == "b"
    assert frame.ok.all()
    assert set(frame.check) == {
        "likelihood",
        "rate",
        "pair",
        "negative dependence",
        "row total",
        "dependent latents",
        "certainty",
    }
    assert frame.what[frame.check == "rate"].str.startswith("item ").all()
    assert frame.what[frame.check == "certainty"].str.startswith("latent").all()
    gaps = table.astype(float)
    gaps.iloc[::3, 2] = np.nan
    assert model.diagnose(gaps).ok.all()
    bare = model.fit(X)
    pd.testing.assert_frame_equal(
        bare.diagnose(X), bare.diagnose(sparse.csr_array(X.astype(float)))
    )


@pytest.mark.parametrize("n_latents", [0, 2])
@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 1)),
        np.zeros((3, 2)),
        np.ones((30, 4)),
        np.full((5, 3), np.nan),
        np.array([[0, 1, np.nan], [1, np.nan, 0]]),
    ],
)
def test_poor_tables_have_a_diagnosis(n_latents, X):
    network = random_network(0, n_latents, X.shape[1])
    frame = diagnose(network, X)
    assert list(frame.columns) == COLUMNS
    assert frame.observed.notna().all()


def test_impossible_rows_fail():
    network = NoisyOrNetwork([0.3], [[0.5, 1.0]], [0.0, 0.0])
    frame = diagnose(network, np.array([[0, 1]] * 20 + [[0, 0]] * 20))
    assert {"likelihood", "rate"} <= failing(frame)
    line = frame[frame.check == "likelihood"].iloc[0]
    assert line.observed == line.z == -np.inf


class TestContradictions:
    names = names_of(TRUTH)[0]
    patterns = Patterns.of(TRUTH.sample(3000, random_state=0)[0])

    def test_small_differences_are_left_alone(self):
        # Significant in 3,000 rows, but small.
        network = NoisyOrNetwork(TRUTH.prior, TRUTH.failure, TRUTH.leak + 0.03)
        assert contradictions(network, self.patterns, self.names) == []

    def test_rates(self):
        leak = TRUTH.leak.copy()
        leak[4] = 0.4
        network = NoisyOrNetwork(TRUTH.prior, TRUTH.failure, leak)
        found = contradictions(network, self.patterns, self.names)
        assert ("rate", "x4") in {(check.check, check.what) for check in found}
        assert not any(check.ok for check in found)
        assert "rates of features differ, as of x4" in misfit_message(found)

    def test_pairs(self):
        rate = 1 - TRUTH.negative_moment(np.arange(18)[:, np.newaxis])
        alone = NoisyOrNetwork([], np.ones((0, 18)), rate)
        found = contradictions(alone, self.patterns, self.names)
        assert {check.check for check in found} == {"pair"}
        assert "pairs of features differ" in misfit_message(found)

    @pytest.mark.parametrize("shift", [0.0, 0.3])
    def test_moments_tell_the_same(self, shift):
        """But for the likelihood."""
        network = NoisyOrNetwork(TRUTH.prior, TRUTH.failure, TRUTH.leak + shift)
        X = TRUTH.sample(3000, random_state=0)[0]
        X[:, 1] = 1 - X[:, 0]
        found = contradictions(network, Patterns.of(X), self.names)
        pairs = [[-1, i, j] for j in range(18) for i in range(-1, j)]
        moments = NegativeMoments.of(PackedRows.of(X), canonical_sets(pairs, 18))
        told = contradictions_of_moments(network, moments, self.names, rough=False)
        assert told[-1].check == "pair"
        expected = [check for check in found if check.check != "likelihood"]
        assert [check[:2] for check in told] == [check[:2] for check in expected]
        for one, other in zip(told, expected, strict=True):
            assert one[2:5] == pytest.approx(other[2:5])

    def test_moments_of_rows_with_gaps(self):
        """Each moment is of the rows that have its features."""
        rng = np.random.default_rng(0)
        X = TRUTH.sample(3000, random_state=0)[0].astype(float)
        X[:, 1] = 1 - X[:, 0]
        X[rng.random(X.shape) < 0.2] = np.nan
        pairs = [[-1, i, j] for j in range(18) for i in range(-1, j)]
        moments = NegativeMoments.of(PackedRows.of(X), canonical_sets(pairs, 18))
        told = contradictions_of_moments(TRUTH, moments, self.names, rough=False)
        assert ("pair", "x0, x1") in {check[:2] for check in told}

    @pytest.mark.parametrize(("strength", "is_worse"), [(0.85, False), (0.97, True)])
    def test_rough_estimates_are_compared_with_independent_columns(
        self, strength, is_worse
    ):
        """An edge that is much too strong is worse than none."""
        X = np.array([[0, 0]] * 350 + [[0, 1], [1, 0]] * 150 + [[1, 1]] * 350)
        sets = canonical_sets([[-1, -1, 0], [-1, -1, 1], [-1, 0, 1]], 2)
        moments = NegativeMoments.of(PackedRows.of(X), sets)
        # One latent, with the rates of the columns.
        prior, failure = [0.5 / strength], np.full((1, 2), 1.0 - strength)
        network = NoisyOrNetwork(prior, failure, [0.0, 0.0])
        alone = -2.0 * np.log(2.0)
        assert (network.log_likelihood(X).mean() < alone) == is_worse
        assert contradictions_of_moments(network, moments, ["a", "b"], rough=False)
        found = contradictions_of_moments(network, moments, ["a", "b"], rough=True)
        assert bool(found) == is_worse

    def test_likelihood(self):
        shuffled = NoisyOrNetwork(TRUTH.prior, TRUTH.failure[:, ::-1], TRUTH.leak)
        moved = NoisyOrNetwork(
            TRUTH.prior, np.roll(TRUTH.failure, 3, axis=1), TRUTH.leak
        )
        assert contradictions(shuffled, self.patterns, self.names)
        found = contradictions(moved, self.patterns, self.names)
        assert found[0].check == "likelihood"
        assert "below that of independent columns" in misfit_message(found)

    def test_known_likelihoods_are_used(self):
        low = np.full(len(self.patterns.weights), -100.0)
        found = contradictions(TRUTH, self.patterns, self.names, low)
        assert [check.check for check in found] == ["likelihood"]


def test_message_has_one_example_of_each_kind():
    found = [
        Check("likelihood", "", -3.0, -2.0, -9.0, False),
        Check("rate", "a", 0.5, 0.25, 9.0, False),
        Check("rate", "b", 0.4, 0.25, 8.0, False),
    ]
    assert misfit_message(found) == (
        "The model contradicts its training data: its likelihood is below that of "
        "independent columns; rates of features differ, as of a: 0.5 observed, 0.25 "
        "expected. diagnose(X) shows more."
    )


def test_learned_classes_are_allowed_their_sampling_error():
    """Weights of classes that were learned from few rows are off by as much."""
    rng = np.random.RandomState(0)
    failure = np.where(np.kron(np.eye(4), np.ones(4)), 0.1, 1.0)
    truth = {"failure": failure, "leak": np.full(16, 0.02)}
    n_failing = {200: 0, np.inf: 0}
    for _ in range(15):
        weight = rng.multinomial(200, np.full(4, 0.25)) / 200
        learned = NoisyOrNetwork(np.eye(4), class_weight=weight, **truth)
        on = NoisyOrNetwork(np.eye(4), class_weight=np.full(4, 0.25), **truth)
        rows = Patterns.of(on.sample(2000, random_state=rng)[0] == 1)
        for n_learned in n_failing:
            subject = subject_of(learned, rows, *names_of(learned), n_learned)
            n_failing[n_learned] += any(
                not check.ok and check.check == "dependent latents"
                for check in subject.others
            )
    assert n_failing[200] <= 1
    assert n_failing[np.inf] > 3
