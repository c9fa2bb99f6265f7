"""Shared by the benchmark scripts: arguments, tables, timing, errors, plots."""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # pictures go to files, also on machines without a screen

import matplotlib.pyplot as plt
import numpy as np
import scipy
import sklearn
from sklearn.utils import check_random_state

import sklearn_latent

RESULTS = Path(__file__).parent / "results"
# One colour per method, in all pictures; they stay apart for colour-blind readers.
COLORS = {
    "plain moments": "#0072b2",
    "refined": "#d55e00",
    "maximum likelihood": "#009e73",
    "variational EM": "#cc79a7",
    "uniform guess": "#777777",
    "counting alone": "#56b4e9",
}


def parse_arguments(description, *, quick=None, **options):
    """Read the command line; further options are given as name=default.

    A tuple is the default of an option that takes several values, of words these alone;
    False that of a switch. `quick` has other defaults for the short version. A run that
    is quick or selects values is `partial`.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run a short version")
    for name, default in options.items():
        several = isinstance(default, tuple)
        sample = default[0] if several else default
        kind = {"action": "store_true"} if default is False else {"type": type(sample)}
        if several:
            kind |= {"nargs": "+", "metavar": name.upper()}
            kind |= {"choices": default} if isinstance(sample, str) else {}
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            default=default,
            help=f"default {' '.join(map(str, default)) if several else default}",
            **kind,
        )
    if "--quick" in sys.argv[1:]:
        parser.set_defaults(**quick or {})
    arguments = parser.parse_args()
    arguments.partial = arguments.quick or any(
        tuple(getattr(arguments, name)) != default
        for name, default in options.items()
        if isinstance(default, tuple)
    )
    return arguments


class Report:
    """Prints Markdown and saves it, with the plots, under one name.

    A quick or partial run has its own name, so that it never replaces the full tables.
    """

    def __init__(self, name, title, *, quick=False):
        self.name = f"{name}_quick" if quick else name
        self.lines: list[str] = []
        self.start = time.perf_counter()
        self.text(f"# {title}", versions())

    def text(self, *paragraphs):
        """Print paragraphs."""
        if self.lines and not self.lines[-1].endswith("\n"):
            self._add("")  # ends a table of single rows
        for paragraph in paragraphs:
            self._add(f"{paragraph}\n")

    def table(self, header, rows):
        """Print a table; the first column is left-aligned, the others right."""
        cells = [[str(cell) for cell in row] for row in [header, *rows]]
        widths = [max(4, *map(len, column)) for column in zip(*cells, strict=True)]
        head, *body = [
            [
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            for row in cells
        ]
        rule = ["-" * widths[0], *["-" * (width - 1) + ":" for width in widths[1:]]]
        lines = ["| " + " | ".join(row) + " |" for row in [head, rule, *body]]
        self._add("\n".join(lines) + "\n")

    def begin(self, header, widths):
        """Print the head of a table whose rows follow one by one, with `row`."""
        self.widths = [
            max(*pair) for pair in zip(map(len, header), widths, strict=True)
        ]
        self.row(header)
        self.row(
            "-" * width if place == 0 else "-" * (width - 1) + ":"
            for place, width in enumerate(self.widths)
        )

    def row(self, cells):
        """Print a row as soon as it is known."""
        padded = [
            str(cell).rjust(width) if place else str(cell).ljust(width)
            for place, (cell, width) in enumerate(zip(cells, self.widths, strict=True))
        ]
        self._add("| " + " | ".join(padded) + " |")

    def figure(self, figure):
        """Save a plot."""
        RESULTS.mkdir(exist_ok=True)
        figure.savefig(RESULTS / f"{self.name}.png", dpi=150)
        plt.close(figure)

    def close(self):
        """Save the tables."""
        self.text(f"Whole run: {time.perf_counter() - self.start:.0f} s.")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{self.name}.md").write_text("\n".join(self.lines))

    def _add(self, lines):
        print(lines, flush=True)
        self.lines.append(lines)


def versions():
    """Versions of the packages that results depend on, in one line."""
    return (
        f"sklearn_latent {sklearn_latent.__version__}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, SciPy "
        f"{scipy.__version__}, scikit-learn {sklearn.__version__}."
    )


def timed(function, *arguments, **options):
    """Call once; return seconds and the result."""
    start = time.perf_counter()
    value = function(*arguments, **options)
    return time.perf_counter() - start, value


def clocked(function, *arguments, **options):
    """Call once; return (wall seconds, processor seconds) and the result.

    On a shared machine, the processor time of a single thread is closer to the time on
    an idle one.
    """
    before = np.array([time.perf_counter(), time.process_time()])
    value = function(*arguments, **options)
    return np.array([time.perf_counter(), time.process_time()]) - before, value


def median_seconds(function, repeats=5):
    """Median time of several calls."""
    return statistics.median(timed(function)[0] for _ in range(repeats))


@contextmanager
def expected(*categories):
    """Ignore warnings that the experiment is expected to cause."""
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


def absolute_errors(model, truth):
    """Absolute errors of priors, failures of edges, and leaks."""
    edges = truth.structure
    return {
        "prior": np.abs(model.prior_ - truth.prior),
        "failure": np.abs(model.failure_ - truth.failure)[edges],
        "leak": np.abs(model.leak_ - truth.leak),
    }


def summed_error(model, truth):
    """Sum of absolute errors of all parameters, as in Figure 3 of the paper."""
    return sum(errors.sum() for errors in absolute_errors(model, truth).values())


def random_structure(n_latents, n_features, n_children, random_state):
    """Give each latent children drawn at random; (low, high): also their number."""
    rng = check_random_state(random_state)
    structure = np.zeros((n_latents, n_features), dtype=bool)
    for row in structure:
        number = n_children
        if isinstance(n_children, tuple):
            number = rng.randint(n_children[0], n_children[1] + 1)
        row[rng.choice(n_features, number, replace=False)] = True
    return structure


def component_supports(components):
    """Structures of components without failures (NMF, ...), at several thresholds."""
    weights = np.maximum(components, 0.0)
    shares = weights / np.maximum(weights.max(axis=1, keepdims=True), 1e-12)
    return [shares > threshold for threshold in (0.2, 0.3, 0.4, 0.5)]


def per_cent(share):
    """Format a share as per cent."""
    return f"{100 * share:.1f}%"
