"""`make explore` goes on past failures and says how to repeat them."""

import subprocess
import sys
from pathlib import Path

from hypothesis import settings

TOOL = Path(__file__).parents[1] / "tools" / "explore.py"

PROFILE = """
from hypothesis import settings
settings.register_profile("explore", database=None)
"""
TESTS = """
from hypothesis import given, strategies as st

def test_without_examples():
    assert False

@given(st.integers(0, 10**6))
def test_of_many_numbers(x):
    assert x < 10

@given(st.integers(0, 9))
def test_of_all(x):
    assert x < 10

@given(st.sampled_from("ab"))
def test_of_two(x):
    assert x == "b"
"""


def test_the_tests_themselves_draw_the_same_examples():
    assert settings.default.derandomize


def test_failures_are_listed_and_repeated(tmp_path):
    (tmp_path / "conftest.py").write_text(PROFILE)
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, TOOL, "--rounds", "1", "--jobs", "0", "--seed", "7"]
    command += ["--logs", tmp_path / "logs", tmp_path / "test_some.py"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    failed = [line for line in found.stdout.splitlines() if line.startswith("FAILED")]
    assert [line.rpartition("::")[2] for line in failed] == [
        "test_of_many_numbers",
        "test_of_two",
    ]
    assert found.stdout.count("--hypothesis-seed=7") == 2
    assert found.stdout.endswith("1 round(s), 2 test(s) failed\n")
    assert "x = 10" in (tmp_path / "logs" / "7.txt").read_text()
