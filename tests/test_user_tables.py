"""Tables as people store them: the right model, or an error with a remedy."""

import re

import pytest
from user_tables import ESTIMATORS, SAME, TABLES, family_of, same_model, try_table


def test_there_are_enough():
    assert len(TABLES) >= 40
    assert len({table.name for table in TABLES}) == len(TABLES)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_same_model_or_an_error_that_helps(table, estimator):
    model, X, _ = try_table(table, estimator)
    expected = getattr(table, family_of(estimator))
    if expected == SAME:
        if isinstance(model, Exception):
            raise model
        assert same_model(table, estimator, model, X)
    else:
        assert isinstance(model, ValueError | TypeError)
        assert re.search(table.named, str(model)), model
        assert re.search(expected, str(model)), model
