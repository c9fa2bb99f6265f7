"""Progress through scikit-learn's callbacks, where the installed version has them."""

import numpy as np
import pytest
from recorder import Recorder
from sklearn.model_selection import GridSearchCV

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner
from sklearn_latent.datasets import figure_1_structure, make_noisy_or

callback = pytest.importorskip("sklearn.callback")
STRUCTURE = figure_1_structure()
DATA = make_noisy_or(STRUCTURE, 2000, leak=0.01, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [NoisyOrMoMLearner(STRUCTURE), NoisyOrEM(structure=STRUCTURE, random_state=0)],
    ids=lambda e: type(e).__name__,
)
def test_every_task_that_begins_ends(estimator):
    recorder = Recorder()
    estimator.set_callbacks(recorder).fit(DATA.X)
    assert len(recorder.begun) > 1
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert recorder.torn_down == 1


# Variational EM is biased, and says so.
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.ModelMisfitWarning")
def test_em_stops_when_asked():
    # At most a few dozen steps are reported otherwise.
    asked = NoisyOrEM(structure=STRUCTURE, inference="variational", random_state=0)
    asked.set_callbacks(Recorder(stop=True)).fit(DATA.X)
    free = NoisyOrEM(structure=STRUCTURE, inference="variational", random_state=0)
    assert asked.n_iter_ < free.fit(DATA.X).n_iter_
    assert np.isfinite(asked.score(DATA.X))


def test_callbacks_are_torn_down_when_fit_fails():
    recorder = Recorder()
    learner = NoisyOrMoMLearner(np.ones((1, 3))).set_callbacks(recorder)
    with pytest.raises(ValueError, match="structure"):
        learner.fit(DATA.X)
    assert recorder.torn_down == 1
    assert not hasattr(learner, "network_")


def test_progress_bar_nested_in_a_search(capsys):
    pytest.importorskip("rich")
    search = GridSearchCV(NoisyOrMoMLearner(STRUCTURE), {"refine": [True, False]}, cv=2)
    search.set_callbacks(callback.ProgressBar())
    assert np.isfinite(search.fit(DATA.X).best_score_)
