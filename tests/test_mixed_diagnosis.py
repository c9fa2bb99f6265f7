"""Whether sequences follow a fitted network."""

import numpy as np
import pandas as pd
import pytest
from dbn_strategies import mixed_dbns, one_latent, seeds
from hypothesis import given, settings

from sklearn_latent import LPCC, LatentDBN, LGLPCCTemporal
from sklearn_latent._answers.diagnosis import diagnose
from sklearn_latent._answers.statistics import Statistics
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import sequences_from_frame
from sklearn_latent.mixed._misfit_of_sequences import subject_of
from sklearn_latent.mixed._panels.panel import Panel

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning"
)

COLUMNS = ["check", "what", "observed", "expected", "z", "ok"]


def failing(checks):
    return set(checks.check[~checks.ok])


def subject(network, values, **options):
    names = [f"x{f}" for f in range(network.n_observed)]
    labels = [range(emission.n_categories) for emission in network.emissions]
    latents = [f"latent{j}" for j in range(network.n_latents)]
    times = [str(t) for t in range(values.shape[1])]
    panel = Panel.of(values, [len(own) for own in labels])
    return subject_of(network, panel, names, latents, times, labels, **options)


def diagnose_network(subject):
    return list(diagnose(subject).itertuples(index=False))


def chain(stay=0.9, share=0.9, n_features=3):
    """One latent of two states that stays, and features that show it."""
    table = np.array([[share, 1 - share], [1 - share, share]])
    moves = np.array([[stay, 1 - stay], [1 - stay, stay]])
    graph = one_latent(n_features)
    return LatentDBN(graph, [2], [[0.5, 0.5]], [moves], [table] * n_features)


class TestStatistics:
    @settings(max_examples=25, deadline=None)
    @given(mixed_dbns(), seeds)
    def test_against_plain_loops(self, network, seed):
        values = network.sample(40, 3, random_state=seed)[0].astype(float)
        own = subject(network, np.where(np.isnan(values), -1, values).astype(int))
        own.values = values
        of = Statistics(own, np.random.RandomState(0))
        sums = of(values)
        for k, mark in enumerate(own.marks):
            column = values[:, :, mark.column]
            if mark.code >= 0:
                assert sums["column"][k] == (column == mark.code).mean()
                assert sums["slice"].reshape(3, -1)[1, k] == pytest.approx(
                    (column[:, 1] == mark.code).mean()
                )
        for p, (i, j) in enumerate(zip(of.first, of.second, strict=True)):
            one, two = own.marks[i], own.marks[j]
            if min(one.code, two.code) >= 0:
                pair = [values[:, :, m.column] == m.code for m in (one, two)]
                if all(part.std() > 0 for part in pair):
                    r = np.corrcoef(*(part.ravel() for part in pair))[0, 1]
                    assert np.tanh(sums["pair"][p]) == pytest.approx(r, abs=1e-7)
        for f, emission in enumerate(network.emissions):
            if not emission.is_numeric:
                column = values[:, :, f]
                repeats = (column[:, 2:] == column[:, :-2]).mean()
                assert sums["older past"][f] == repeats


class TestChecks:
    def test_few_of_many_tables_fail(self):
        network = chain()
        failed = 0
        for seed in range(40):
            values = network.sample(150, 5, random_state=seed)[0]
            values[np.random.default_rng(seed).random(values.shape) < 0.1] = -1
            checks = diagnose_network(subject(network, values))
            failed += not all(check.ok for check in checks)
        assert failed <= 5  # 5% are 2; 6 or more have a probability of 1.4%

    @pytest.mark.parametrize(
        ("other", "check"),
        [
            (chain(stay=0.6), "own past"),
            (chain(share=0.6), "pair"),
            (chain(stay=0.6), "older past"),
        ],
    )
    def test_data_of_another_network(self, other, check):
        values = other.sample(500, 5, random_state=0)[0]
        checks = diagnose_network(subject(chain(), values))
        assert check in {line.check for line in checks if not line.ok}

    def test_other_rates_in_one_slice(self):
        network = chain()
        values = network.sample(500, 5, random_state=0)[0]
        values[:, 3, 1] = np.random.default_rng(0).random(500) < 0.2
        checks = diagnose_network(subject(network, values))
        lines = [line for line in checks if line.check == "slice" and not line.ok]
        assert lines
        assert all("x1" in line.what and line.what.endswith("at 3") for line in lines)

    def test_latents_that_move_in_another_way_from_some_slice_on(self):
        calm, restless = chain(stay=0.95, share=0.8), chain(stay=0.6, share=0.8)
        before, states = calm.sample(500, 5, random_state=0)
        after, then = restless.sample(2000, 5, random_state=1)
        # Continue each sequence with one that starts where it ends.
        rng = np.random.default_rng(0)
        places = [
            rng.choice(np.flatnonzero(then[:, 0, 0] == state))
            for state in states[:, -1, 0]
        ]
        values = np.concatenate([before, after[places, 1:]], axis=1)
        checks = diagnose_network(subject(chain(stay=0.8, share=0.8), values))
        lines = [line for line in checks if line.check == "step" and not line.ok]
        assert lines and lines[0].what.startswith("x")

    def test_rates(self):
        network = chain()
        values = np.ones((300, 3, 3), dtype=int)
        checks = diagnose_network(subject(network, values))
        line = next(line for line in checks if line.check == "rate")
        assert (line.observed, line.ok) == (1.0, False)
        assert not next(line for line in checks if line.check == "likelihood").ok

    def test_rows_that_taught_little_leave_more_open(self):
        network = chain()
        values = chain(stay=0.8).sample(300, 5, random_state=0)[0]
        sure = diagnose_network(subject(network, values))
        unsure = diagnose_network(subject(network, values, n_learned=30))
        z = [
            max(abs(c.z) for c in found if c.check == "own past")
            for found in (sure, unsure)
        ]
        assert z[1] < z[0] / 2

    def test_a_latent_that_nothing_shows(self):
        checks = diagnose_network(
            subject(chain(share=0.5), np.zeros((50, 3, 3), dtype=int))
        )
        line = next(line for line in checks if line.check == "certainty")
        assert line.ok  # a note for the reader
        assert line.observed == pytest.approx(0.0, abs=1e-9)


class TestEstimators:
    def test_a_model_of_its_own_data(self):
        X = make_latent_dbn("G2", 400, 4, random_state=0).X
        model = LGLPCCTemporal(4, random_state=0).fit(X)
        checks = model.diagnose(X)
        assert list(checks.columns) == COLUMNS
        assert checks.ok.all()
        assert checks.ok.dtype == bool

    def test_rows_without_time(self):
        X = make_latent_dbn("G2", 500, 1, random_state=0).X
        checks = LPCC(random_state=0).fit(X).diagnose(X)
        assert checks.ok.all()
        assert not {"own past", "older past", "slice", "step"} & set(checks.check)

    def test_two_slices_have_no_older_past(self):
        X = make_latent_dbn("G1", 200, 2, random_state=0).X
        checks = LGLPCCTemporal(2, random_state=0).fit(X).diagnose(X)
        older = checks[checks.check == "older past"]
        assert checks.ok.all() and not older.z.any()

    def test_a_latent_of_second_order(self):
        rng = np.random.default_rng(0)
        states = rng.integers(2, size=(400, 8))
        for t in range(2, 8):
            kept = rng.random(400) < 0.9
            states[:, t] = np.where(kept, states[:, t - 2], 1 - states[:, t - 2])
        wrong = rng.random((400, 8, 4)) < 0.1
        X = np.where(wrong, 1 - states[:, :, None], states[:, :, None]).astype(float)
        # More states would remember more than one slice.
        model = LGLPCCTemporal(8, cardinality=2, random_state=0).fit(X)
        assert "older past" in failing(model.diagnose(X))

    def test_names_of_features_and_times(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "id": np.repeat(np.arange(100), 3),
                "month": np.tile([0, 6, 12], 100),
                "mood": rng.integers(2, size=300),
                "pulse": rng.normal(size=300),
            }
        )
        X = sequences_from_frame(frame, sequence="id", time="month")
        checks = LGLPCCTemporal(3, random_state=0).fit(X).diagnose(X)
        assert checks.what.str.contains("mood=").any()
        assert checks.what.str.contains("at 6|at 12|at 0").any()
        assert "pulse" in set(checks.what[checks.check == "tails"])

    @pytest.mark.parametrize("n", [1, 2])
    def test_few_sequences(self, n):
        X = make_latent_dbn("G1", 200, 3, random_state=0).X
        model = LGLPCCTemporal(3, random_state=0).fit(X)
        assert np.isfinite(model.diagnose(X[:n]).observed).all()

    def test_many_sequences_are_thinned_out(self):
        X = make_latent_dbn("G1", 2500, 3, random_state=0).X
        model = LGLPCCTemporal(3, random_state=0).fit(X)
        pd.testing.assert_frame_equal(model.diagnose(X), model.diagnose(X))
