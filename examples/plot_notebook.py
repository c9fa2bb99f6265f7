"""
Estimators in a notebook
========================

This example shows how estimators are displayed in a notebook, how to follow the
progress of a long fit, and how to get tables instead of arrays.
"""

# %%
# Display of an estimator
# -----------------------
# An estimator in the last line of a cell is displayed as a box with its parameters.
# scikit-learn 1.9 and newer add the fitted attributes. Click on the box to expand it.
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
# ``to_frame`` returns a table with one row per edge. Features have the names of the
# columns, if the model was fitted to a data frame.
learner.to_frame().round(3)

# %%
# After ``set_output``, ``transform`` returns a data frame as well.
learner.set_output(transform="pandas").transform(data.X[:4]).round(3)

# %%
# ``plot`` draws the model. Here colours show the round in which an edge was learned.
learner.plot(color_by="depth")

# %%
# Verbose output
# --------------
# With ``verbose=1`` a fit prints its steps and the time since its start.
images = make_noisy_or_images(500, random_state=0)
QuartetStructureLearner(verbose=1).fit(images.X)

# %%
# Progress bars
# -------------
# scikit-learn 1.9 introduced callbacks. Its progress bar works with every estimator of
# this library. It needs the package `rich` and, in a notebook, `ipywidgets`:
# ``pip install rich ipywidgets``. The bars of the fits are nested under the bar of the
# search.
try:
    from sklearn.callback import ProgressBar
except ImportError:  # scikit-learn < 1.9
    ProgressBar = None

search = GridSearchCV(learner, {"refine": [True, False]}, cv=2)
if ProgressBar is not None:
    search.set_callbacks(ProgressBar())
search.fit(data.X)

# %%
# Custom callbacks
# ----------------
# A callback is an object with the following methods. This one records when each step of
# a fit ended.
import time


class Stopwatch:
    """Records when each step of a fit ended."""

    def setup(self, estimator, context):
        """Start the clock."""
        self.start, self.steps = time.perf_counter(), []

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context):
        """Record the step; returning True would ask the fit to stop."""
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
