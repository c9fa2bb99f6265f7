"""Tables that nobody here made: no crash, no leaked warning, no far row."""

import pytest
from strangers import LEARNERS, choose, examine, load, takes

# Larger tables, and more of them, are tried by benchmarks/strangers.py.
STEP, MOST_ROWS = 110, 200
TABLES = choose(STEP, first=50)


@pytest.mark.parametrize("table", TABLES, ids="/".join)
def test_every_learner_takes_what_it_claims_to_take(table):
    whole = load(*table, MOST_ROWS)
    for name in LEARNERS:
        columns = takes(name, whole)
        if columns.shape[1] > 1:
            outcome = examine(name, columns, simpler=False)
            assert not outcome.faults, (name, outcome)
