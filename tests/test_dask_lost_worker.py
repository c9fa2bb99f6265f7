"""A worker that dies in the middle of a fit changes no number."""

import os

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.mixed import SEMDBN

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

STRUCTURE = np.kron(np.eye(2, dtype=bool), np.ones((1, 4), dtype=bool))
NETWORK = NoisyOrNetwork([0.4, 0.3], np.where(STRUCTURE, 0.2, 1.0), [0.05] * 8)
ROWS = NETWORK.sample(400, random_state=0)[0].astype(float)
ESTIMATORS = [
    NoisyOrMoMLearner(STRUCTURE),
    NoisyOrEM(2, max_iter=10, tol=1e-3, random_state=0),
    QuartetStructureLearner(random_state=0),
    IdealParentGaussianBN(margins="normal"),
    LPCC(max_iter=5, random_state=0),
    LGLPCCTemporal(2, max_iter=5, random_state=0),
    SEMDBN(1, 2, 2, n_init=1, max_rounds=1, max_iter=5, random_state=0),
]
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(tmp_path_factory.mktemp("dask")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def die_once(rows, place):
    """The rows; the first process that asks for them for good does not live on."""
    try:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return rows
    os._exit(1)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_lost_worker_changes_no_number(estimator, client, tmp_path):
    died = tmp_path / "died"
    blocks = da.from_array(ROWS, chunks=(100, 8))
    expected = clone(estimator).fit(blocks)
    lossy = blocks.map_blocks(die_once, str(died), dtype=float, meta=np.empty((0, 0)))
    assert not died.exists()
    model = clone(estimator).fit(lossy)
    assert died.exists()
    np.testing.assert_allclose(
        model.score_samples(ROWS), expected.score_samples(ROWS), rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        model.transform(ROWS), expected.transform(ROWS), rtol=0, atol=1e-10
    )
