"""pytest plugin of `mutants.py`: which tests run, in which order, for how long.

The environment says what is wanted:

MUTANTS_TESTS: file with one test per line, its identifier, a tab and its time limit
    in seconds. Only these run, in this order, and the process ends at once with
    `TIMED_OUT` where one takes longer.
MUTANTS_TIMES: file to which seconds, outcome and identifier of every test are
    appended.
"""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import Phase, settings

TIMED_OUT = 97

# The same examples every time and no deadline, so that only the mutant can make a test
# fail; no shrinking, because nobody looks at the example.
settings.register_profile(
    "mutants",
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)


def pytest_configure():
    """Choose the profile after `conftest.py` has chosen its own."""
    settings.load_profile("mutants")


class Chosen:
    """Runs some of the tests, each with a time limit."""

    def __init__(self, path):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        pairs = [line.rsplit("\t", 1) for line in lines]
        self.limits = {test: float(limit) for test, limit in pairs}
        self.order = {test: i for i, test in enumerate(self.limits)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid in self.order]
        items.sort(key=lambda item: self.order[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        # A signal reaches Python code only; the caller limits the rest.
        if not hasattr(signal, "setitimer"):
            return (yield)
        signal.signal(signal.SIGALRM, lambda *_: os._exit(TIMED_OUT))
        signal.setitimer(signal.ITIMER_REAL, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


class Times:
    """Writes how long every test took and whether it passed."""

    def __init__(self, path):
        self.path = path
        self.seconds = {}
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        test = report.nodeid
        self.seconds[test] = self.seconds.get(test, 0.0) + report.duration
        if report.outcome != "passed" or test not in self.outcomes:
            self.outcomes[test] = report.outcome

    def pytest_sessionfinish(self):
        with open(self.path, "a", encoding="utf-8") as file:
            for test, seconds in self.seconds.items():
                file.write(f"{seconds:.4f}\t{self.outcomes[test]}\t{test}\n")


if "MUTANTS_TESTS" in os.environ:
    chosen = Chosen(os.environ["MUTANTS_TESTS"])
    pytest_collection_modifyitems = chosen.pytest_collection_modifyitems
    pytest_runtest_protocol = chosen.pytest_runtest_protocol

# Reports of all workers arrive in the process that started them.
if "MUTANTS_TIMES" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
    times = Times(os.environ["MUTANTS_TIMES"])
    pytest_runtest_logreport = times.pytest_runtest_logreport
    pytest_sessionfinish = times.pytest_sessionfinish
