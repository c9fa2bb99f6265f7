"""Every estimator through scikit-learn's checks, also those not on the default list."""

import pytest
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
