"""
Estimators in a notebook
=========================

What a notebook shows of an estimator, how to watch a long fit, and tables instead of
arrays.
"""

# %%
# An estimator shows itself
# -------------------------
# The last line of a cell that is an estimator becomes a box: parameters, and after the
# fit the fitted attributes, if your scikit-learn shows these (1.9 and newer do). Click
# on it.
import numpy as np
from sklearn.model_selection import GridSearchCV

from sklearn_latent import NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.datasets import (
    figure_1_structure,
    make_noisy_or,
    make_noisy_or_images,
)

structure = figure_1_structure()
data = make_noisy_or(structure, 5000, random_state=0)
learner = NoisyOrMoMLearner(structure)
learner.fit(data.X)

# %%
# Tables
# ------
# ``to_frame`` has one row per edge; names come from the columns of a data frame.
learner.to_frame().round(3)

# %%
# With ``set_output``, ``transform`` returns a data frame, too.
learner.set_output(transform="pandas").transform(data.X[:4]).round(3)

# %%
# And ``plot`` draws. Colours may stand for the round in which an edge was learned.
learner.plot(color_by="depth")

# %%
# A fit that talks
# ----------------
# ``verbose=1`` prints a line per step, with the time since the start.
images = make_noisy_or_images(500, random_state=0)
QuartetStructureLearner(verbose=1).fit(images.X)

# %%
# Progress bars
# -------------
# scikit-learn 1.9 brought callbacks. Its own progress bar, which needs the package
# `rich`, works for every estimator of this library, and nests: a bar for the search,
# bars for the fits inside it.
try:
    from sklearn.callback import ProgressBar
except ImportError:  # scikit-learn < 1.9
    ProgressBar = None

search = GridSearchCV(learner, {"refine": [True, False]}, cv=2)
if ProgressBar is not None:
    search.set_callbacks(ProgressBar())
search.fit(data.X)

# %%
# A callback of your own
# ----------------------
# Any object with these methods will do. This one writes down when each step ended; in a
# grid search it would be told of every fit.
import time


class Stopwatch:
    """Writes down when each step of a fit ended."""

    def setup(self, estimator, context):
        """Start the clock."""
        self.start, self.steps = time.perf_counter(), []

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context):
        """Note the step; a callback that returns True asks the fit to stop."""
        self.steps.append((context.task_name, time.perf_counter() - self.start))
        return False

    def teardown(self, estimator, context):
        """Do nothing."""


watch = Stopwatch()
if ProgressBar is not None:
    QuartetStructureLearner().set_callbacks(watch).fit(images.X)
    print(f"{len(watch.steps)} steps; the slowest three:")
    ends = [0.0, *(seconds for _, seconds in watch.steps)]
    for k in np.argsort(np.diff(ends))[:-4:-1]:
        print(f"  {ends[k + 1] - ends[k]:.3f} s  {watch.steps[k][0]}")
