"""Every estimator through scikit-learn's checks, also those not on the default list."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_latent import (
    LPCC,
    SEMDBN,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
)
from sklearn_latent.baselines import (
    IndependentFeatures,
    LatentClasses,
)

ESTIMATORS = [
    NoisyOrMoMLearner(),
    NoisyOrMoMLearner(refine=False, clean_up=False),
    NoisyOrEM(),
    NoisyOrEM(n_latents=2, inference="variational"),
    QuartetStructureLearner(),
    QuartetStructureLearner(refine=False),
    IdealParentGaussianBN(),
    IdealParentGaussianBN(search="greedy", n_candidates=2, max_latents=2),
    IdealParentGaussianBN(link="sigmoid", max_latents=1, bipartite=True),
    LPCC(),
    LPCC(local="lpcc"),
    LGLPCCTemporal(),
    LGLPCCTemporal(local="lpcc"),
    SEMDBN(),
    IndependentFeatures(),
    LatentClasses(),
]
# The checks feed one to three columns of noise, which no structure can explain.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


# Not part of the default list; names that a version of scikit-learn does not have are
# left out.
OPTIONAL_CHECKS = [
    name
    for name in (
        "check_dataframe_column_names_consistency",
        "check_global_output_transform_pandas",
        "check_global_output_transform_polars",
        "check_global_set_output_transform_pandas",
        "check_global_set_output_transform_polars",
        "check_inplace_ensure_writeable",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
    )
    if hasattr(estimator_checks, name)
]


# These checks mix frames and arrays on purpose.
@pytest.mark.filterwarnings(
    "ignore:X (has|does not have valid) feature names:UserWarning"
)
@pytest.mark.parametrize("check", OPTIONAL_CHECKS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_optional_check(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


def fitted(estimator, X, weights=None):
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, sample_weight=weights)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_weights(estimator):
    """Counts are copies, no weight is no row, and sampling weights have no scale."""
    rng = np.random.default_rng(0)
    X = 2.0 * rng.integers(0, 2, (80, 1)) - 1.0 + rng.normal(size=(80, 5))
    counts = rng.integers(0, 3, 80)
    kept, survey = counts > 0, rng.lognormal(size=80) * (counts > 0)
    for one, two in (
        ((X, counts), (np.repeat(X, counts, axis=0),)),
        ((X, survey), (X[kept], 1000.3 * survey[kept])),
        ((X, np.full(80, 0.3)), (X,)),
    ):
        found, expected = (fitted(estimator, *rows) for rows in (one, two))
        assert found.n_latents_ == expected.n_latents_
        np.testing.assert_allclose(
            found.score_samples(X), expected.score_samples(X), rtol=1e-4
        )


@pytest.mark.parametrize("scale", [1.0, 1000.5])
@pytest.mark.parametrize(
    ("estimator", "n_values"),
    [
        (QuartetStructureLearner(), 2),
        (IdealParentGaussianBN(), None),
        (LPCC(), 3),
        (LGLPCCTemporal(4), 3),
    ],
)
def test_survey_weights_reveal_nothing(estimator, n_values, scale):
    """One heavy row is no group of rows."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        numbers = rng.normal(size=(300, 8))
        X = rng.integers(0, n_values, (300, 12)) if n_values else numbers
        model = fitted(estimator, X, scale * rng.lognormal(-0.5, size=300))
        assert model.n_latents_ == 0
        assert model.to_networkx().number_of_edges() == 0
