"""Contributions of cells add up to the posterior, which enumeration confirms."""

import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from brute_force import class_networks, joint, networks, random_network, random_rows
from dbn_strategies import brute_force, dbns, mixed_dbns, sequences
from gaussian_strategies import random_linear_network
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError

from sklearn_latent import (
    LPCC,
    SEMDBN,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
    sequences_from_frame,
)
from sklearn_latent._answers.explain import CERTAIN, Evidence, explain_row
from sklearn_latent.datasets import make_latent_dbn, make_noisy_or
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.mixed._mixed_answers import part_of
from sklearn_latent.noisy_or._noisy_or_model import network_attributes

seeds = st.integers(0, 2**32 - 1)


def noisy_or(network, names=None):
    """An estimator as if it had learned a network."""
    model = NoisyOrEM(binarize=None)
    model.n_features_in_ = network.n_features
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.__dict__.update(network_attributes(network))
    return model


def gaussian(network):
    model = IdealParentGaussianBN()
    model.n_features_in_ = network.n_features
    model._store(network)
    return model


def check_effects(explanation, target, n_cells):
    """Compare all numbers with a function of which cells are seen (n_rows, n_cells).

    target: gives what is believed of all latents that are explained
    """
    full = np.ones((1, n_cells), dtype=bool)
    total, base = target(full)[0], target(~full)[0]
    np.testing.assert_allclose(explanation.base, base, atol=1e-7)
    np.testing.assert_allclose(explanation.total, total, atol=1e-7)
    for j, own in enumerate(explanation.weights):
        added = own.contribution.sum()
        assert own.base + added == pytest.approx(own.total, abs=1e-9)
        seen = ~full[0]
        before = base[j]
        for cell, lost, more in zip(
            own.cells, own.leave_one_out, own.contribution, strict=True
        ):
            without = full[0].copy()
            without[cell] = False
            assert total[j] - target(without[None])[0, j] == pytest.approx(
                lost, abs=1e-6
            )
            seen[cell] = True
            after = target(seen[None])[0, j]
            assert after - before == pytest.approx(more, abs=1e-6)
            before = after


def enumerated_log_odds(network, row):
    """Log-odds of all latents by enumeration, as a function of what is seen."""

    def target(seen):
        table, Z = joint(network, np.where(seen, row, np.nan))
        return log_ratio(table @ Z, table @ (1 - Z))

    return target


def log_ratio(on, off):
    """Log-odds, within the limits of certainty."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(on) - np.log(off), -CERTAIN, CERTAIN)


@settings(max_examples=40, deadline=None)
@given(network=networks | class_networks, seed=seeds)
def test_noisy_or_is_enumeration(network, seed):
    row = random_rows(seed, 1, network.n_features, missing=0.2)[0]
    target = enumerated_log_odds(network, row)
    model = noisy_or(network)
    explanation = model.explain(row)
    known = np.flatnonzero(~np.isnan(row))
    np.testing.assert_allclose(
        explanation.posterior, model.transform([row])[0], atol=1e-9
    )
    if np.isneginf(model.score_samples([row])[0]):
        assert not any(own.contribution.any() for own in explanation.weights)
        np.testing.assert_allclose(explanation.prior, network.prior, atol=1e-12)
        return
    check_effects(explanation, target, len(row))
    for own in explanation.weights:
        assert set(own.cells) <= set(known)
        # The largest effects come first; cells that are not listed have none.
        sizes = np.round(np.abs(own.leave_one_out), 6)
        assert (np.diff(sizes) <= 1e-6).all()
    full = target(np.ones((1, len(row)), dtype=bool))[0]
    for j, own in enumerate(explanation.weights):
        for cell in set(known) - set(own.cells):
            seen = np.ones((1, len(row)), dtype=bool)
            seen[0, cell] = False
            assert target(seen)[0, j] == pytest.approx(full[j], abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n_features=st.integers(1, 60))
def test_one_latent_has_log_likelihood_ratios(seed, n_features):
    """However certain it is: 60 cells give log-odds beyond those of any float."""
    rng = np.random.default_rng(seed)
    failure = rng.uniform(0.05, 0.95, (1, n_features))
    leak = rng.uniform(0.05, 0.5, n_features)
    row = rng.integers(0, 2, n_features).astype(float)
    if rng.random() < 0.5:
        row[:] = row[0]
    off = (1 - leak) * failure[0]
    ratio = np.where(row == 1, np.log((1 - off) / leak), np.log(failure[0]))
    model = noisy_or(NoisyOrNetwork([0.3], failure, leak))
    explanation = model.explain(row)
    (own,) = explanation.weights
    expected = np.clip(logit(0.3) + ratio.sum(), -CERTAIN, CERTAIN)
    assert explanation.total[0] == pytest.approx(expected, abs=1e-6)
    assume(abs(logit(0.3) + np.cumsum(ratio[own.cells])).max() < CERTAIN)
    assume(abs(expected) < CERTAIN - np.abs(ratio).max())
    np.testing.assert_allclose(own.contribution, ratio[own.cells], atol=1e-6)
    np.testing.assert_allclose(own.leave_one_out, ratio[own.cells], atol=1e-6)


def test_certainty_is_finite_and_adds_up():
    network = NoisyOrNetwork([0.3, 0.2], [[0.0, 0.5, 1.0], [1.0, 1.0, 0.4]], [0.0] * 3)
    explanation = noisy_or(network).explain([1, 0, 1])
    assert explanation.posterior.tolist() == [1.0, 1.0]
    for own in explanation.weights:
        assert np.isfinite(own.contribution).all()
        assert own.base + own.contribution.sum() == pytest.approx(CERTAIN)
    # x0 = 1 proves the first latent, whatever else is seen.
    first = explanation.to_frame().query("latent == 'latent0' and feature == 'x0'")
    assert first.leave_one_out.item() > 90


def test_order_of_ties_is_that_of_columns():
    network = NoisyOrNetwork([0.3], [[0.5] * 4], [0.1] * 4)
    (own,) = noisy_or(network).explain([1, 1, 1, 1]).weights
    assert own.cells.tolist() == [0, 1, 2, 3]


def test_bounds_warn_once():
    rng = np.random.default_rng(0)
    failure = np.where(rng.random((40, 60)) < 0.5, 0.6, 1.0)
    model = noisy_or(NoisyOrNetwork(np.full(40, 0.2), failure, np.full(60, 0.01)))
    row = np.ones(60)
    with pytest.warns(ApproximateInferenceWarning) as found:
        explanation = model.explain(row, latents=0)
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.transform([row])[0, 0]
    assert explanation.posterior[0] == pytest.approx(posterior, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    seed=seeds,
    n_latents=st.integers(1, 3),
    n_features=st.integers(1, 6),
    missing=st.booleans(),
)
def test_linear_gaussian_is_conditioning(seed, n_latents, n_features, missing):
    network = random_linear_network(
        n_latents + n_features, seed, density=0.3, n_latents=n_latents
    )
    row = network.sample(1, seed)[0][0]
    if missing:
        row[seed % n_features] = np.nan
    mean, covariance = network.joint()

    def target(seen):
        means = []
        for mask in seen:
            own = np.flatnonzero(mask & ~np.isnan(row))
            gain = np.linalg.solve(covariance[np.ix_(own, own)], row[own] - mean[own])
            means.append(mean[n_features:] + covariance[n_features:, own] @ gain)
        return np.array(means)

    model = gaussian(network)
    explanation = model.explain(row)
    check_effects(explanation, target, n_features)
    np.testing.assert_allclose(
        explanation.posterior, model.transform([row])[0, n_features:], atol=1e-8
    )


def test_bent_network_adds_up():
    weights = np.zeros((4, 4))
    weights[3, :3] = [2.0, -1.0, 1.5]
    network = GaussianNetwork(
        weights != 0,
        weights,
        np.zeros(4),
        [0.1, 0.1, 0.1, 1.0],
        link="sigmoid",
        link_parameters=np.tile([0.0, 1.0], (4, 1)),
        n_latents=1,
    )
    model = gaussian(network)
    row = network.sample(1, 0)[0][0]
    with pytest.warns(ApproximateInferenceWarning) as found:
        explanation = model.explain(row)
    assert len(found) == 1
    (own,) = explanation.weights
    assert own.base + own.contribution.sum() == pytest.approx(own.total, abs=1e-12)
    with pytest.warns(ApproximateInferenceWarning):
        completed = model.transform([row])[0]
    assert explanation.posterior[0] == pytest.approx(completed[3])


SMALL = {"max_latents": 2, "max_observed": 3}


@settings(max_examples=15, deadline=None)
@given(
    network=dbns(**SMALL) | mixed_dbns(**SMALL), seed=seeds, n_slices=st.integers(1, 2)
)
def test_states_are_enumeration(network, seed, n_slices):
    codes = sequences(network, 1, n_slices, seed)[0]
    t = seed % n_slices
    gap = np.nan if codes.dtype.kind == "f" else -1
    posterior = network.posterior(codes[None])
    states = {j: int(own[0, t].argmax()) for j, own in enumerate(posterior)}

    def target(seen):
        rows = []
        for mask in seen:
            shown = np.where(mask.reshape(codes.shape), codes, gap)
            paths, probability = brute_force(network, shown)
            on = paths[:, t] == np.array(list(states.values()))
            rows.append(log_ratio(probability @ on, probability @ ~on))
        return np.array(rows)

    latents = np.arange(network.n_latents)
    part = partial(
        part_of,
        network,
        lambda rows: network._expect(network._data(rows)).states,
        codes,
        t,
        states,
    )
    names = [f"x{f}" for f in range(codes.size)]
    evidence = Evidence(part, codes.ravel(), names, states=states)
    explanation = explain_row(evidence, latents, [f"latent{j}" for j in latents])
    # Cells of other parts are listed nowhere.
    check_effects(explanation, target, codes.size)


DBN = make_latent_dbn("G2", n_sequences=300, n_slices=3, random_state=0).X
BINARY = make_noisy_or(n_samples=500, random_state=0).X
rng = np.random.default_rng(0)
FACTORS = rng.normal(size=(300, 1)) @ rng.normal(size=(1, 5)) + 0.4 * rng.normal(
    size=(300, 5)
)


def named(X):
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


ESTIMATORS = [
    (NoisyOrMoMLearner(np.ones((1, BINARY.shape[1]))), BINARY),
    (NoisyOrEM(2, random_state=0), BINARY),
    (QuartetStructureLearner(random_state=0), BINARY),
    (IdealParentGaussianBN(max_latents=1, bipartite=True), FACTORS),
    (LPCC(random_state=0), DBN[:, :6]),
    (LGLPCCTemporal(3, random_state=0), DBN),
    (SEMDBN(2, 2, 3, n_init=1, max_rounds=1, random_state=0), DBN),
]


@cache
def fitted(place):
    estimator, X = ESTIMATORS[place]
    return estimator.fit(named(X))


@pytest.fixture(
    params=range(len(ESTIMATORS)), ids=lambda i: type(ESTIMATORS[i][0]).__name__
)
def model(request):
    return fitted(request.param)


def data_of(model):
    """A row of the training data."""
    X = {5: FACTORS, 6: DBN[:, :6], DBN.shape[1]: DBN}.get(model.n_features_in_, BINARY)
    return X[3].astype(float)


class TestEstimators:
    def test_posterior_is_that_of_transform(self, model):
        row = data_of(model)
        explanation = model.explain(row)
        columns = model.transform(named(row[None]))[0]
        assert model.n_latents_ and len(explanation.posterior) == model.n_latents_
        for value in explanation.posterior:
            assert np.abs(columns - value).min() < 1e-9
        table = explanation.to_frame()
        assert list(table.columns[:2]) == ["latent", "feature"]
        assert set(table.feature) <= set(model._node_names())
        for j, name in enumerate(model.latent_names_):
            own = table[table.latent == name]
            added = own.contribution.sum()
            assert explanation.base[j] + added == pytest.approx(explanation.total[j])
            assert own.posterior.iloc[-1] == pytest.approx(explanation.posterior[j])

    def test_containers_agree(self, model):
        row = data_of(model)
        row[1] = np.nan
        expected = model.explain(row).to_frame()
        names = model.feature_names_in_
        by_name = {name: v for name, v in zip(names, row, strict=True) if v == v}
        others = [
            row.tolist(),
            row[None],
            pd.Series(row, index=names)[::-1],
            pd.Series(row),
            named(row[None]),
            named(row[None])[names[::-1]],
            by_name,
            pl.DataFrame(dict(zip(names, row[:, None].tolist(), strict=True))),
        ]
        for other in others:
            pd.testing.assert_frame_equal(
                model.explain(other).to_frame(), expected, check_dtype=False
            )

    def test_text_names_latents_and_cells(self, model):
        text = str(model.explain(data_of(model)))
        assert all(text.count(name) for name in model.latent_names_)
        assert "it most (" in text

    def test_some_latents(self, model):
        row = data_of(model)
        everything = model.explain(row).to_frame()
        name = model.latent_names_[-1]
        for chosen in (name, [name], model.n_latents_ - 1, np.array([-1 % 1])):
            one = model.explain(row, latents=chosen)
            own = everything[everything.latent == one.latent_names[0]]
            pd.testing.assert_frame_equal(
                one.to_frame(), own.reset_index(drop=True), check_exact=False
            )

    def test_nothing_seen(self, model):
        explanation = model.explain({})
        assert not len(explanation.to_frame())
        np.testing.assert_allclose(explanation.base, explanation.total)
        assert "no cell" in str(explanation)

    def test_wrong_rows(self, model):
        row = data_of(model)
        wrong = [
            row[:-1],
            np.tile(row, (2, 1)),
            named(np.tile(row, (2, 1))),
            [[1], [1, 2]],
        ]
        wrong += [5.0, "abc", None, {"who": 1}, pd.Series([1.0], index=["who"])]
        wrong += [named(row[None]).assign(who=1)]
        wrong += [pd.Series(row[[0, 0]], index=model.feature_names_in_[[0, 0]])]
        for other in wrong:
            with pytest.raises(ValueError, match="row must"):
                model.explain(other)

    def test_wrong_latents(self, model):
        for wrong in ("who", model.n_latents_, -1, [0.5], [None], ["who"]):
            with pytest.raises(ValueError, match="latents must"):
                model.explain(data_of(model), latents=wrong)

    def test_renamed_latents(self, model):
        names = [f"cause {j}" for j in range(model.n_latents_)]
        before = model.latent_names_.tolist()
        model.rename_latents(names)
        try:
            assert model.explain(data_of(model)).latent_names == names
        finally:
            model.rename_latents(before)


@pytest.mark.parametrize("estimator", [NoisyOrEM(), IdealParentGaussianBN(), LPCC()])
def test_not_fitted(estimator):
    with pytest.raises(NotFittedError):
        estimator.explain([1.0])


def test_no_latents():
    model = IdealParentGaussianBN().fit(FACTORS)
    explanation = model.explain(FACTORS[0])
    assert "no latents" in str(explanation)
    assert len(explanation.to_frame()) == 0
    (text,) = explanation.plot().ax_.texts
    assert text.get_text() == str(explanation)
    with pytest.raises(ValueError, match="latent must be None: the model has no"):
        explanation.plot(latent=0)


def test_sparse_row():
    model = NoisyOrEM(2, random_state=0).fit(BINARY)
    X = sparse.csr_array(BINARY)
    pd.testing.assert_frame_equal(
        model.explain(X[[0]]).to_frame(),
        model.explain(BINARY[0]).to_frame(),
        check_dtype=False,
    )


def test_columns_read_the_other_way_round():
    network = random_network(0, 2, 5, n_classes=1)
    flipped = NoisyOrNetwork(
        network.prior, network.failure, network.leak, polarity=-network.polarity
    )
    row = np.array([1.0, 0, 1, 0, 0])
    one, two = noisy_or(network).explain(row), noisy_or(flipped).explain(1 - row)
    for a, b in zip(one.weights, two.weights, strict=True):
        np.testing.assert_allclose(a.contribution, b.contribution)


class TestSlices:
    @property
    def model(self):
        return fitted(5)

    row = DBN[3].astype(float)

    def test_shapes_of_a_sequence(self):
        expected = self.model.explain(self.row).to_frame()
        for other in (self.row.reshape(3, -1), self.row.reshape(1, 3, -1)):
            found = self.model.explain(other).to_frame()
            pd.testing.assert_frame_equal(found, expected)

    def test_last_recorded_slice(self):
        row = self.row.copy()
        row[-self.model.n_observed_ :] = np.nan
        found = self.model.explain(row).to_frame()
        named = self.model.explain(row, slice=1).to_frame()
        pd.testing.assert_frame_equal(found, named)
        assert set(found["slice"]) == {"0", "1"}

    @pytest.mark.parametrize("t", [0, 1, 2, "2"])
    def test_posterior_of_the_slice(self, t):
        found = self.model.explain(self.row, slice=t).posterior
        states = self.model.transform(named(self.row[None])).reshape(3, -1)[int(t)]
        parts = np.split(states, np.cumsum(self.model.cardinality_)[:-1])
        np.testing.assert_allclose(found, [part.max() for part in parts])

    @pytest.mark.parametrize("wrong", [3, -1, 0.5, "who", [0]])
    def test_wrong_slice(self, wrong):
        with pytest.raises(ValueError, match="slice must"):
            self.model.explain(self.row, slice=wrong)

    def test_several_sequences(self):
        with pytest.raises(ValueError, match="row must be a single sequence"):
            self.model.explain(DBN[:2].reshape(2, 3, -1))

    def test_long_table(self):
        n_observed = self.model.n_observed_
        long = pd.DataFrame(
            DBN.reshape(-1, n_observed), columns=[f"c{j}" for j in range(n_observed)]
        )
        long["id"] = np.repeat(np.arange(len(DBN)), 3)
        long["month"] = np.tile([0, 6, 12], len(DBN))
        X = sequences_from_frame(long, sequence="id", time="month")
        model = LGLPCCTemporal(3, random_state=0).fit(X)
        one = model.explain(long[long.id == 3], slice="6")
        two = model.explain(X[3:4], slice=1)
        pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())
        assert set(one.to_frame()["slice"]) == {"0", "6", "12"}
        assert "slice 6" in str(one)
        with pytest.raises(ValueError, match="row must"):
            model.explain(long)


def test_numbers_stay_finite_for_wide_tables():
    """A thousand columns, of which a latent drives few."""
    structure = np.zeros((20, 1000), dtype=bool)
    structure[np.arange(1000) // 50, np.arange(1000)] = True
    network = NoisyOrNetwork(
        np.full(20, 0.1), np.where(structure, 0.5, 1.0), np.full(1000, 0.02)
    )
    row = network.sample(1, 0)[0][0]
    explanation = noisy_or(network).explain(row)
    assert all(len(own.cells) == 50 for own in explanation.weights)
    np.testing.assert_allclose(
        expit(explanation.total), network.posterior([row])[0], atol=1e-9
    )


@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
@pytest.mark.parametrize("cell", [[1], (1, 2), {"a": 1}, np.ones(2)])
def test_cells_are_single_values(cell):
    model = NoisyOrMoMLearner([[1, 1, 1]]).fit(np.eye(3, dtype=int)[[0, 1, 2, 0]])
    with pytest.raises(ValueError, match="one value per feature"):
        model.explain([1, cell, 0])
