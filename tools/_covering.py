"""Which tests execute which lines of the package, kept from run to run."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Covering", "Test", "environment", "measure"]

TOOLS = Path(__file__).parent
PACKAGE = "sklearn_latent"


@dataclass(frozen=True)
class Test:
    """A test that passes without mutants, and its seconds."""

    name: str
    seconds: float


@dataclass
class Covering:
    """Tests by the lines that they execute.

    tests: by name
    lines: by path of a module and name of a test, a number whose bit i says that the
        test executes line i
    broken: names of tests that fail or are skipped without any mutant
    """

    tests: dict[str, Test]
    lines: dict[str, dict[str, int]]
    broken: list[str]

    def tests_of(self, path: str, lines: tuple[int, int] | None) -> list[Test]:
        """Tests that execute one of the lines, or any of the module, fastest first."""
        mask = -1 if lines is None else (1 << lines[1] + 1) - (1 << lines[0])
        found = [
            self.tests[name]
            for name, executed in self.lines.get(path, {}).items()
            if executed & mask and name in self.tests
        ]
        return sorted(found, key=lambda test: (test.seconds, test.name))


def environment(root: Path, **more: str) -> dict[str, str]:
    """Variables for a run of pytest on the tree below `root`."""
    # A run from inside pytest is not part of it.
    outer = ("PYTEST_", "COV_")
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(outer)},
        "PYTHONPATH": os.pathsep.join([str(root), str(root / "tools")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        **more,
    }


def measure(
    root: Path, tree: Path, cache: Path, files: Iterable[str], n_workers: int
) -> Covering:
    """Run the tests once with coverage, or read what an earlier run has found.

    root: the project, whose files say whether a result of `cache` is still true
    tree: a copy of it, where the tests run
    files: test files to run
    """
    cache.mkdir(parents=True, exist_ok=True)
    keys = {file: _key(root, file) for file in files}
    stale = [f for f, key in keys.items() if not (cache / f"{key}.json").exists()]
    if stale:
        print(f"Running {len(stale)} test files with coverage ...", flush=True)
        for file, found in _run(tree, cache, stale, n_workers).items():
            (cache / f"{keys[file]}.json").write_text(json.dumps(found))
    return _merge(
        json.loads((cache / f"{key}.json").read_text()) for key in keys.values()
    )


def _key(root, file):
    """Digest of all that the lines which a test file executes depend on."""
    digest = hashlib.sha256()
    helpers = [p for p in root.glob("tests/**/*.py") if not p.name.startswith("test_")]
    for path in sorted([*root.glob(f"{PACKAGE}/**/*.py"), *helpers, root / file]):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _run(tree, cache, files, n_workers):
    """Times and lines, by test file."""
    times, database = cache / "times.txt", cache / "coverage"
    times.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "_mutants_plugin"]
    command += ["-p", "no:cacheprovider", "--no-header", "--tb=no", "-rN"]
    command += [
        "-n",
        str(n_workers if n_workers > 1 else 0),
        f"--cov={PACKAGE}",
        "--cov-branch",
    ]
    # Lines are enough, and cheaper than the branches of the project's settings.
    command += ["--cov-context=test", "--cov-report=", f"--cov-config={os.devnull}"]
    command += ["--continue-on-collection-errors", *files]
    variables = {"MUTANTS_TIMES": str(times), "COVERAGE_FILE": str(database)}
    # The other cores of coverage know no contexts.
    variables["COVERAGE_CORE"] = "ctrace"
    subprocess.run(command, cwd=tree, env=environment(tree, **variables), check=False)
    if not times.exists():
        raise SystemExit("The tests did not run.")
    found: dict = {file: {"times": {}, "broken": [], "lines": {}} for file in files}
    for line in times.read_text(encoding="utf-8").splitlines():
        seconds, outcome, test = line.split("\t", 2)
        part = found[test.split("::")[0]]
        if outcome == "passed":
            part["times"][test] = float(seconds)
        else:
            part["broken"].append(test)
    for path, line, test in _executed(tree, database):
        lines = found[test.split("::")[0]]["lines"].setdefault(path, {})
        lines[test] = lines.get(test, 0) | 1 << line
    return found


def _executed(tree, database):
    """Triples of path, line and test."""
    from coverage import CoverageData

    data = CoverageData(str(database))
    data.read()
    for measured in data.measured_files():
        path = Path(measured).relative_to(tree).as_posix()
        for line, contexts in data.contexts_by_lineno(measured).items():
            # A context is a test and the phase of it; the empty one is an import.
            for test in {context.rsplit("|", 1)[0] for context in contexts if context}:
                yield path, line, test


def _merge(parts):
    covering = Covering({}, {}, [])
    for part in parts:
        covering.broken += part["broken"]
        for name, seconds in part["times"].items():
            covering.tests[name] = Test(name, seconds)
        for path, lines in part["lines"].items():
            covering.lines.setdefault(path, {}).update(lines)
    return covering
