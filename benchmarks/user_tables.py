"""What each estimator makes of tables as people store them.

The tables are those of the tests. For each table and estimator: whether the model is
that of the plain table, with how many warnings, or the error.

    python benchmarks/user_tables.py
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from user_tables import ESTIMATORS, TABLES, same_model, try_table


def outcome(table, estimator: str) -> tuple[str, str]:
    """Kind of outcome, and a short text of it."""
    model, X, messages = try_table(table, estimator)
    if isinstance(model, Exception):
        text = " ".join(str(model).split())
        what = re.search(r"(in|column|columns) (column )?('[^']*'|\d+|item \w)", text)
        remedy = re.split(r"(?<=[a-z)'\]\d])\. (?=[A-Z])", text, maxsplit=1)[-1]
        return "error", f"error, {what[0] if what else ''}: {remedy[:70]}"
    if not same_model(table, estimator, model, X):
        return "another model", "ANOTHER MODEL"
    if messages:
        return "same, with warnings", f"same model, {len(messages)} warning(s)"
    return "same", "same model"


def main():
    """Print a line for each table and each kind of outcome."""
    counts = Counter()
    for table in TABLES:
        texts: dict[str, list[str]] = {}
        for estimator in ESTIMATORS:
            kind, text = outcome(table, estimator)
            counts[kind] += 1
            texts.setdefault(text, []).append(estimator)
        print(table.name)
        for text, names in texts.items():
            print(f"    {', '.join(names)}: {text}")
    print(f"{len(TABLES)} tables, {len(ESTIMATORS)} estimators:", dict(counts))


if __name__ == "__main__":
    main()
