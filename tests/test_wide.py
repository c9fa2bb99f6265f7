"""Wide tables: pairs counted where they occur, groups of columns, their network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_latent import QuartetStructureLearner
from sklearn_latent._tables.blocks import LocalBlocks
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.metrics import edge_f1
from sklearn_latent.noisy_or import _structure, _wide_tables
from sklearn_latent.noisy_or._statistics import together
from sklearn_latent.noisy_or._statistics.packed import PackedRows
from sklearn_latent.noisy_or._statistics.together import (
    Singles,
    Together,
    dependence_z,
    find_links,
)
from sklearn_latent.noisy_or._wide_tables import find_groups, split_columns

pytestmark = pytest.mark.filterwarnings(
    "ignore:X has poor columns:sklearn_latent.exceptions.PoorDataWarning"
)


def plant(n_features, n_latents, size, *, shared=False):
    """Priors, failures and leaks; latents of their own columns or of random ones."""
    rng = np.random.RandomState(0)
    failure = np.ones((n_latents, n_features))
    for latent, row in enumerate(failure):
        children = np.arange(latent * size, (latent + 1) * size)
        if shared:
            children = rng.choice(n_features, size, replace=False)
        row[children] = rng.uniform(0.2, 0.5, size)
    prior = rng.uniform(0.01, 0.04, n_latents)
    return prior, failure, rng.uniform(0.005, 0.02, n_features)


def draw(network, n_rows, seed=1):
    """Rows of a network as a csr array."""
    prior, failure, leak = network
    rng = np.random.RandomState(seed)
    Z = (rng.uniform(size=(n_rows, len(prior))) < prior).astype(float)
    off = np.exp(Z @ np.log(failure)) * (1.0 - leak)
    return sparse.csr_array(rng.uniform(size=off.shape) >= off)


def pack(X, n_blocks=3, weights=None):
    """Blocks of packed rows."""
    parts = np.array_split(np.arange(X.shape[0]), n_blocks)
    return LocalBlocks(
        [
            PackedRows.of(X[part], None, None if weights is None else weights[part])
            for part in parts
        ]
    )


@st.composite
def tables(draw):
    """Rows with some density, missing values and weights, or without."""
    shape = draw(st.integers(1, 150)), draw(st.integers(1, 12))
    rng = np.random.RandomState(draw(st.integers(0, 1000)))
    X = (rng.uniform(size=shape) < draw(st.sampled_from([0.02, 0.5]))).astype(float)
    if draw(st.booleans()):
        X[rng.uniform(size=shape) < draw(st.sampled_from([0.01, 0.3]))] = np.nan
    weights = rng.randint(1, 4, shape[0]).astype(float)
    return X, weights if draw(st.booleans()) else None


class TestTogether:
    @given(tables(), st.sampled_from([3, 512]), st.sampled_from([-1.0, None, 1.0]))
    @settings(deadline=None)
    def test_pairs_are_counted_as_by_a_dense_product(self, table, strip, share):
        """By places or by bits."""
        X, weights = table
        block = PackedRows.of(X, None, weights)
        weights = np.ones(len(X)) if weights is None else weights
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(together, "STRIP", strip)
            if share is not None:
                patch.setattr(together, "SPARSE", share)
            counted = Together.of(block)
            for start in range(0, X.shape[1], strip):
                for count, truth in (
                    (counted.count_on, X == 1),
                    (counted.count_missing, np.isnan(X)),
                ):
                    found = count(start)
                    if found is None:
                        assert not truth.any()
                        continue
                    found = found.toarray() if sparse.issparse(found) else found
                    expected = (truth * weights[:, None]).T.astype(float) @ truth
                    expected = expected[start : start + strip, start:]
                    np.testing.assert_allclose(found, expected)

    @given(tables())
    @settings(deadline=None)
    def test_singles_add_up(self, table):
        X, weights = table
        whole = Singles.of(PackedRows.of(X, None, weights))
        parts = pack(X, min(2, len(X)), weights).sum(Singles.of)
        weights = np.ones(len(X)) if weights is None else weights
        for one in (whole, parts):
            np.testing.assert_allclose(one.on, weights @ (X == 1))
            np.testing.assert_allclose(one.known, weights @ ~np.isnan(X))

    def test_links_are_the_pairs_of_a_full_search(self):
        X = draw(plant(60, 4, 6, shared=True), 3000)
        links = find_links(pack(X), pack(X).sum(Singles.of))
        on = X.toarray().astype(float)
        both, single = on.T @ on, on.sum(axis=0)
        i, j = np.triu_indices(60, 1)
        total = np.full(len(i), float(len(on)))
        z = dependence_z(both[i, j], single[i], single[j], total)
        chosen = (z >= together.LEAST_Z) & (both[i, j] >= together.LEAST_COUNT)
        pairs = zip(i[chosen], j[chosen], strict=True)
        expected = dict(zip(pairs, z[chosen], strict=True))
        pairs = zip(links.one, links.two, strict=True)
        found = dict(zip(pairs, links.z, strict=True))
        assert found == pytest.approx(expected)
        assert len(found) > 20

    def test_deviance_of_rare_pairs_bounds_their_chance(self):
        # Chernoff: P(Poisson >= k) <= exp(-deviance / 2).
        from scipy.stats import poisson

        n, one, two = 1e6, 1000.0, 1000.0
        for k in range(5, 30):
            z = dependence_z(*(np.array([v]) for v in (float(k), one, two, n)))[0]
            assert poisson.sf(k - 1, one * two / n) <= np.exp(-(z**2) / 2.0) * 1.01

    def test_the_strongest_links_stay(self, monkeypatch):
        X = draw(plant(60, 4, 6), 3000)
        all_links = find_links(pack(X), pack(X).sum(Singles.of))
        monkeypatch.setattr(together, "MOST_PAIRS", 10)
        monkeypatch.setattr(together, "STRIP", 7)
        some = find_links(pack(X), pack(X).sum(Singles.of))
        assert np.sort(some.z) == pytest.approx(np.sort(all_links.z)[-10:])


class TestGroups:
    def test_groups_are_the_components_of_the_network(self):
        X = draw(plant(300, 10, 8), 4000)
        blocks = pack(X)
        found = find_groups(blocks, blocks.sum(Singles.of))
        sets = {tuple(int(j) for j in group.core) for group in found}
        assert sets == {tuple(range(8 * i, 8 * i + 8)) for i in range(10)}
        assert all((group.core == group.features).all() for group in found)

    def test_rows_split_otherwise_give_the_same_groups(self):
        X = draw(plant(300, 30, 8, shared=True), 2000)
        tables = [pack(X, n_blocks) for n_blocks in (1, 5)]
        one, two = (find_groups(t, t.sum(Singles.of)) for t in tables)
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a.core, b.core)
            np.testing.assert_array_equal(a.features, b.features)

    @given(st.integers(0, 10_000), st.sampled_from([3, 10, 60]))
    @settings(deadline=None)
    def test_cores_do_not_overlap_and_hold_all_linked_columns(self, seed, large):
        rng = np.random.RandomState(seed)
        cliques = [rng.choice(60, rng.randint(3, 9), replace=False) for _ in range(9)]
        graph = np.zeros((60, 60))
        for clique in cliques:
            graph[np.ix_(clique, clique)] = rng.uniform(5.0, 20.0)
        np.fill_diagonal(graph, 0.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_wide_tables, "LARGE", large)
            found = split_columns(sparse.csr_array(graph))
        cores = np.concatenate([group.core for group in found])
        assert len(cores) == len(np.unique(cores))
        for group in found:
            assert np.isin(group.core, group.features).all()
            assert (np.diff(group.features) > 0).all()
        if large == 60:
            assert set(cores) == set(np.concatenate(cliques))

    def test_pairs_without_a_third_are_no_group(self):
        graph = sparse.csr_array(np.diag(np.full(9, 9.0), 1))
        assert split_columns(sparse.csr_array(graph + graph.T)) == []


class TestLearner:
    @pytest.mark.parametrize("shared", [False, True])
    def test_planted_latents_of_a_wide_table(self, shared):
        network = plant(2500, 30, 9, shared=shared)
        model = QuartetStructureLearner(random_state=0).fit(draw(network, 5000))
        assert model.n_latents_ == 30
        assert edge_f1(network[1] < 1.0, model.structure_) > 0.99
        for latent, quartet in enumerate(model.quartets_):
            assert model.structure_[latent, quartet[quartet >= 0]].all()
        assert model.failure_stderr_.shape == (30, 2500)
        np.testing.assert_array_equal(
            ~np.isnan(model.failure_stderr_), model.structure_
        )

    @pytest.mark.parametrize(
        ("missing", "options"), [(0.0, {}), (0.1, {}), (0.0, {"refine": False})]
    )
    def test_group_by_group_is_as_all_at_once(self, monkeypatch, missing, options):
        network = plant(150, 9, 9)
        X = draw(network, 6000).toarray().astype(float)
        X[np.random.RandomState(0).uniform(size=X.shape) < missing] = np.nan
        learner = QuartetStructureLearner(random_state=0, **options)
        whole = learner.fit(X).log_likelihood_
        monkeypatch.setattr(_structure, "WIDE", 100)
        learner.fit(X)
        assert edge_f1(network[1] < 1.0, learner.structure_) > 0.99
        if options:
            assert (learner.quartets_ >= 0).all()
            return
        # EM ends where a step gains little, not at the same place.
        assert learner.log_likelihood_ == pytest.approx(whole, abs=0.002 * len(X))
        assert learner.is_exact_
        exact = learner.score_samples(X).sum()
        assert learner.log_likelihood_ == pytest.approx(exact)

    def test_children_of_several_latents_are_as_all_at_once(self, monkeypatch):
        network = plant(150, 20, 9, shared=True)
        X = draw(network, 3000)
        learner = QuartetStructureLearner(random_state=0)
        whole = edge_f1(network[1] < 1.0, learner.fit(X).structure_)
        monkeypatch.setattr(_structure, "WIDE", 100)
        monkeypatch.setattr(_wide_tables, "LARGE", 30)
        learner.fit(X)
        assert edge_f1(network[1] < 1.0, learner.structure_) > whole - 0.02
        assert learner.n_latents_ == 20

    def test_batches_and_blocks_give_the_same_model(self, monkeypatch):
        da = pytest.importorskip("dask.array")
        monkeypatch.setattr(_structure, "WIDE", 100)
        X = draw(plant(150, 9, 9), 2000)
        blocks = da.from_array(X.toarray().astype(np.int8), chunks=(800, 150))
        whole, parts = (QuartetStructureLearner(random_state=0) for _ in "12")
        whole.fit(X)
        parts.partial_fit(X[:700], update=False).partial_fit(X[700:])
        assert whole.network_ == parts.network_
        for rows in (iter([X[:700], X[700:]]), blocks):
            assert whole.network_ == parts.fit(rows).network_

    def test_noise_has_no_latent(self, monkeypatch):
        monkeypatch.setattr(_structure, "WIDE", 100)
        X = np.random.RandomState(0).uniform(size=(1000, 150)) < 0.05
        with pytest.warns(PoorDataWarning, match="No latent found"):
            model = QuartetStructureLearner().fit(X)
        assert model.n_latents_ == 0
        assert model.transform(X).shape == (1000, 0)
        np.testing.assert_allclose(model.leak_, X.mean(axis=0), atol=1e-6)
        assert model.log_likelihood_ == pytest.approx(model.score_samples(X).sum())
