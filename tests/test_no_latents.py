"""A fit without latents says what that means for the steps that come next."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
)
from sklearn_latent.exceptions import PoorDataWarning

X = np.random.default_rng(0).integers(0, 2, (60, 6)).astype(float)
NOISE = np.random.default_rng(0).normal(size=(60, 6))
NONE = np.zeros((0, 6), dtype=bool)
CASES = [
    (QuartetStructureLearner(), X),
    (NoisyOrMoMLearner(NONE), X),
    (NoisyOrEM(structure=NONE, random_state=0), X),
    (IdealParentGaussianBN(output="latents"), NOISE),
    (IdealParentGaussianBN(output="latents", max_latents=1), NOISE),
    (LPCC(random_state=0), X),
    (LPCC(random_state=0), np.zeros_like(X)),
    (LPCC(random_state=0), np.full_like(X, np.nan)),
    (LGLPCCTemporal(2, random_state=0), X),
]


def messages(action):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = action()
    return result, [w for w in found if "No latent found" in str(w.message)]


@pytest.mark.parametrize(("estimator", "X"), CASES)
def test_one_warning_names_what_follows_and_the_remedy(estimator, X):
    fitted, found = messages(lambda: estimator.fit(X))
    assert fitted.n_latents_ == 0
    assert fitted.transform(X).shape == (60, 0)
    (warning,) = found
    assert warning.category is PoorDataWarning
    for word in ("no columns", "pipeline", "FeatureUnion", "passthrough"):
        assert word in str(warning.message)


def test_edges_and_classes_are_not_called_independence():
    chain = NOISE.cumsum(axis=1)
    groups = np.vstack([NOISE, NOISE + 9.0])
    for rows, what in ((NOISE, "independent"), (chain, "edge"), (groups, "2 classes")):
        model = IdealParentGaussianBN(output="latents")
        (warning,) = messages(partial(model.fit, rows))[1]
        assert what in str(warning.message)
        assert ("independent" in str(warning.message)) == (rows is NOISE)


def test_the_pipeline_fails_and_the_remedy_works():
    y = X[:, 0]
    learner, classifier = QuartetStructureLearner(), LogisticRegression()
    with (
        pytest.warns(PoorDataWarning, match="No latent found"),
        pytest.raises(ValueError, match="0 feature"),
    ):
        make_pipeline(learner, classifier).fit(X, y)
    both = FeatureUnion([("features", "passthrough"), ("latents", learner)])
    with pytest.warns(PoorDataWarning, match="FeatureUnion"):
        assert make_pipeline(both, classifier).fit(X, y).score(X, y) == 1.0


def test_all_nodes_need_no_warning():
    """By default a Gaussian network returns its features, latents or not."""
    fitted, found = messages(lambda: IdealParentGaussianBN(max_latents=1).fit(NOISE))
    assert fitted.transform(NOISE).shape == (60, 6) and not found
