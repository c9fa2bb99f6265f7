"""The same fit gives the same model: again, elsewhere, in parallel, in other order."""

import copy
import os
import pickle
import subprocess
import sys
from functools import cache

import joblib
import numpy as np
import pytest

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn

STRUCTURE = np.kron(np.eye(3, dtype=bool), np.ones((1, 5), dtype=bool))
STRUCTURE[0, 5] = STRUCTURE[1, 10] = True
ESTIMATORS = {
    "moments": NoisyOrMoMLearner(STRUCTURE),
    "plain moments": NoisyOrMoMLearner(STRUCTURE, refine=False),
    "EM": NoisyOrEM(structure=STRUCTURE, n_init=2, random_state=0),
    "variational EM": NoisyOrEM(
        structure=STRUCTURE, inference="variational", random_state=0
    ),
    "quartets": QuartetStructureLearner(),
    "plain quartets": QuartetStructureLearner(refine=False),
    "Gaussian": IdealParentGaussianBN(random_state=0),
    "Gaussian, greedy": IdealParentGaussianBN(search="greedy", random_state=0),
    "latent classes": LPCC(random_state=0),
    "panels": LGLPCCTemporal(n_slices=3, random_state=0),
}


def make_rows(name):
    """Rows for an estimator."""
    if name.startswith("Gaussian"):
        return make_gaussian_bn(n_samples=400, n_features=8, random_state=0).X
    if name in ("latent classes", "panels"):
        n_slices = 3 if name == "panels" else 1
        panel = make_latent_dbn("G1", 200, n_slices, random_state=0).X
        return np.asarray(panel, dtype=float).reshape(200, -1)
    return make_binary_rows()


@cache
def make_binary_rows():
    rng = np.random.default_rng(0)
    failure = np.where(STRUCTURE, rng.uniform(0.1, 0.5, STRUCTURE.shape), 1.0)
    network = NoisyOrNetwork([0.3, 0.2, 0.4], failure, np.full(15, 0.05))
    X = network.sample(2000, random_state=1)[0].astype(float)
    X[rng.random(X.shape) < 0.01] = np.nan
    return X


def fit(name, change=lambda X: X, **parameters):
    """What an estimator learns, from its rows or a variant of them."""
    estimator = copy.deepcopy(ESTIMATORS[name]).set_params(**parameters)
    return arrays_of(estimator.fit(change(make_rows(name))))


def arrays_of(fitted):
    """All that was learned, as arrays."""
    names = [name for name in vars(fitted) if name.endswith("_")]
    values = {name: getattr(fitted, name) for name in sorted(names)}
    return {
        name: np.asarray(value, dtype=float)
        for name, value in values.items()
        if isinstance(value, (np.ndarray, float, int))
        and np.asarray(value).dtype != object
    }


def assert_same(one, two):
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_allclose(
            one[name], two[name], rtol=1e-10, atol=1e-10, err_msg=name
        )


@pytest.fixture(scope="module")
def reference():
    return {name: fit(name) for name in ESTIMATORS}


@pytest.mark.parametrize("name", ESTIMATORS)
class TestSameModel:
    def test_twice(self, name, reference):
        assert_same(fit(name), reference[name])
        # Nothing of the first fit leaks into the second.
        X, estimator = make_rows(name), copy.deepcopy(ESTIMATORS[name])
        assert_same(arrays_of(estimator.fit(X).fit(X)), reference[name])

    def test_global_random_state_does_not_matter(self, name, reference):
        np.random.seed(7)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        assert_same(fit(name), reference[name])
        after = np.random.get_state()[1]  # noqa: NPY002
        np.testing.assert_array_equal(after, before)

    @pytest.mark.parametrize("backend", ["threading", "loky"])
    def test_in_parallel(self, name, backend, reference):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert_same(fit(name), reference[name])
        if "n_jobs" in ESTIMATORS[name].get_params():
            assert_same(fit(name, n_jobs=2), reference[name])

    def test_rows_in_other_order(self, name, reference):
        rng = np.random.default_rng(5)
        assert_same(fit(name, lambda X: X[rng.permutation(len(X))]), reference[name])

    def test_memory_layout_does_not_matter(self, name, reference):
        def padded(X):
            wide = np.full((len(X), X.shape[1] + 2), np.nan)
            wide[:, 1:-1] = X
            return wide[:, 1:-1]

        for change in (np.asfortranarray, padded):
            assert_same(fit(name, change), reference[name])


SCRIPT = """
import pickle, sys
from test_determinism import ESTIMATORS, fit
fitted = {name: fit(name) for name in ESTIMATORS}
sys.stdout.buffer.write(pickle.dumps(fitted))
"""


def test_in_another_process(reference):
    # Another seed of string hashes: sets and dictionaries must not decide.
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        check=True,
        env=os.environ
        | {"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    fitted = pickle.loads(run.stdout)
    for name in ESTIMATORS:
        assert_same(fitted[name], reference[name])
