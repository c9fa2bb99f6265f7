"""Tables that nobody here made: no crash, no leaked warning, no far row."""

import pytest
from strangers import LEARNERS, examine, load, takes

# `choose(110, first=50)`. More tables, with all rows, are in benchmarks/strangers.py.
TABLES = [
    ("AER", "USCrudes"),
    ("COUNT", "azprocedure"),
    ("drc", "vinclozolin"),
    ("Ecdat", "Unemployment"),
    ("HSAUR", "water"),
    ("mlmRev", "egsingle"),
    ("nlme", "Spruce"),
    ("palmerpenguins", "penguins"),
    ("Stat2Data", "FloridaDP"),
    ("stevedata", "pwt_sample"),
    ("wooldridge", "big9salary"),
]
MOST_ROWS = 200


@pytest.mark.parametrize("table", TABLES, ids="/".join)
def test_every_learner_takes_what_it_claims_to_take(table):
    whole = load(*table, MOST_ROWS)
    for name in LEARNERS:
        columns = takes(name, whole)
        if columns.shape[1] > 1:
            outcome = examine(name, columns, simpler=False)
            assert not outcome.faults, (name, outcome)
