"""Mutation testing: do the tests notice when one operator is wrong?

Draws a fixed random sample of single-operator mutants of the algorithms, runs each
against the tests that execute the changed line, and lists those which survive.

    python tools/mutants.py --count 20 --paths sklearn_latent/mixed --seed 1
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue

from _covering import Covering, Test, environment, measure
from _mutants_plugin import TIMED_OUT
from _mutate import Mutant, draw, mutants_of

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "mutants"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.txt"

# The algorithms: neither how things are drawn or exported, nor how data is made.
MODULES = [
    "sklearn_latent/noisy_or",
    "sklearn_latent/gaussian",
    "sklearn_latent/mixed",
    "sklearn_latent/_tables/blocks.py",
    "sklearn_latent/_core/climb.py",
    "sklearn_latent/_core/criteria.py",
    "sklearn_latent/_core/graphs.py",
    "sklearn_latent/metrics.py",
]
LEFT_OUT = {
    "__init__.py",
    "_gaussian_graph.py",
    "_noisy_or_graph.py",
    "_two_slices_graph.py",
}

# Other work on the machine may slow a test; a loop without an end is slower still.
SLACK = 10.0
START_UP = 60.0

KILLED = "killed"
SURVIVED = "survived"
HARMLESS = "equivalent"
TIME_OUT = "timed out"
UNCOVERED = "not covered"
UNDECIDED = "undecided"
VERDICTS = [KILLED, SURVIVED, HARMLESS, TIME_OUT, UNCOVERED, UNDECIDED]


@dataclass(frozen=True)
class Result:
    """What became of a mutant, and a word on why."""

    mutant: Mutant
    verdict: str
    note: str = ""


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = _parse(arguments)
    sample = draw(candidates(options.paths), options.count, options.seed)
    if options.again:
        alive = {tuple(text) for text in _last_run()}
        sample = [mutant for mutant in sample if mutant.text in alive]
    if options.list:
        for mutant in sample:
            print(_line(mutant))
        return 0
    start = time.monotonic()
    results = run(sample, options)
    print(_report(results))
    print(f"{time.monotonic() - start:.0f} s")
    CACHE.mkdir(parents=True, exist_ok=True)
    alive = [r.mutant.text for r in results if r.verdict not in (KILLED, HARMLESS)]
    (CACHE / "alive.json").write_text(json.dumps(alive, indent=1))
    return int(_score(results) < options.fail_under)


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=120, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--paths", nargs="+", default=MODULES, help="what to mutate")
    parser.add_argument("--tests", nargs="+", help="test files to use; default all")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument(
        "--budget",
        type=float,
        default=120.0,
        help="seconds of tests per mutant; what survives the fastest tests within "
        "them while others are left is undecided",
    )
    parser.add_argument(
        "--fail-under", type=float, default=0.0, help="percentage to be killed"
    )
    parser.add_argument("--list", action="store_true", help="print the sample only")
    parser.add_argument(
        "--again", action="store_true", help="only those the last run did not kill"
    )
    return parser.parse_args(arguments)


def _last_run():
    path = CACHE / "alive.json"
    return json.loads(path.read_text()) if path.exists() else []


def candidates(paths: list[str]) -> list[Mutant]:
    """All mutants of the modules at or below some paths."""
    modules: set[str] = set()
    for path in paths:
        full = ROOT / path
        if not full.exists():
            raise SystemExit(f"--paths: there is no {path}")
        found = full.rglob("*.py") if full.is_dir() else [full]
        modules |= {p.relative_to(ROOT).as_posix() for p in found}
    chosen = sorted(m for m in modules if Path(m).name not in LEFT_OUT)
    return [mutant for module in chosen for mutant in mutants_of(ROOT, module)]


def run(sample: list[Mutant], options: argparse.Namespace) -> list[Result]:
    """Verdicts on all mutants of a sample."""
    known = known_equivalents()
    results = [
        Result(mutant, HARMLESS, known[mutant.text])
        for mutant in sample
        if mutant.text in known
    ]
    sample = [mutant for mutant in sample if mutant.text not in known]
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for i in range(options.jobs):
            trees.put(_copy(Path(folder).resolve() / str(i)))
        tree = trees.get()
        files = options.tests or sorted(
            path.relative_to(ROOT).as_posix()
            for path in ROOT.glob("tests/**/test_*.py")
        )
        covering = measure(ROOT, tree, CACHE, files, options.jobs)
        trees.put(tree)
        if covering.broken:
            print("Left out, because they do not pass:", *covering.broken, sep="\n  ")

        def judge(mutant):
            tree = trees.get()
            try:
                result = _judge(mutant, tree, covering, options.budget)
            finally:
                trees.put(tree)
            print(f"{result.verdict:12}{_line(mutant)}", flush=True)
            return result

        with ThreadPoolExecutor(options.jobs) as pool:
            results += pool.map(judge, sample)
    return results


def known_equivalents() -> dict[tuple[str, str, str, str], str]:
    """Reasons of mutants that nothing can kill."""
    known = {}
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            path, function, change, reason = line.split(" :: ", 3)
            before, after = change.split(" -> ", 1)
            known[path.split(":")[0], function, before, after] = reason
    return known


def _copy(tree):
    """Copy of the project, whose compiled files do not outlive their source."""
    skipped = shutil.ignore_patterns(
        "__pycache__",
        ".*_cache",
        ".hypothesis",
        ".git",
        ".venv",
        "build",
        "dist",
        "_build",
    )
    shutil.copytree(ROOT, tree, ignore=skipped)
    for folder in ("sklearn_latent", "tests"):
        # By content: a mutant may have the size and the second of its original.
        mode = PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(tree / folder, quiet=1, invalidation_mode=mode)
    return tree


def _judge(mutant, tree, covering: Covering, budget: float) -> Result:
    tests = covering.tests_of(mutant.path, None if mutant.at_import else mutant.lines)
    chosen = _affordable(tests, budget)
    if not tests:
        return Result(mutant, UNCOVERED)
    if not chosen:
        return Result(mutant, UNDECIDED, "all tests are slower than the budget")
    path = tree / mutant.path
    source = path.read_bytes()
    path.write_bytes(mutant.apply(source))
    try:
        status, last = _pytest(tree, chosen)
    finally:
        path.write_bytes(source)
    if status in (1, 2):
        return Result(mutant, KILLED, last)
    if status == TIMED_OUT:
        return Result(mutant, TIME_OUT, last)
    if status != 0:
        return Result(mutant, UNDECIDED, f"pytest ended with {status}: {last}")
    if len(chosen) < len(tests):
        return Result(mutant, UNDECIDED, f"{len(chosen)} of {len(tests)} tests run")
    return Result(mutant, SURVIVED, f"{len(tests)} tests")


def _affordable(tests: list[Test], budget: float) -> list[Test]:
    """The fastest tests that fit into a budget of seconds."""
    chosen, total = [], 0.0
    for test in tests:
        total += test.seconds
        if total > budget:
            break
        chosen.append(test)
    return chosen


def _pytest(tree, tests: list[Test]) -> tuple[int, str]:
    """Exit status of the tests, run until the first failure, and the last line."""
    wanted = tree / "mutants_tests.txt"
    limits = [SLACK + 5 * test.seconds for test in tests]
    lines = [f"{t.name}\t{limit}\n" for t, limit in zip(tests, limits, strict=True)]
    wanted.write_text("".join(lines), encoding="utf-8")
    files = dict.fromkeys(test.name.split("::")[0] for test in tests)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "_mutants_plugin"]
    command += ["-p", "no:cacheprovider", "--no-header", "--tb=no", "-rN", *files]
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment(tree, MUTANTS_TESTS=str(wanted)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    total = sum(test.seconds for test in tests)
    try:
        out, _ = process.communicate(timeout=START_UP + SLACK + 5 * total)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return TIMED_OUT, "all tests together"
    return process.returncode, (out.strip().splitlines() or [""])[-1]


def _line(mutant):
    path, function, before, after = mutant.text
    return f"{path}:{mutant.lines[0]} :: {function} :: {before} -> {after}"


def _score(results):
    """Percentage that dies of the mutants that can, time-outs included."""
    count = Counter(result.verdict for result in results)
    mortal = len(results) - count[HARMLESS]
    return 100.0 * (count[KILLED] + count[TIME_OUT]) / mortal if mortal else 100.0


def _report(results):
    count = Counter(result.verdict for result in results)
    lines = []
    for verdict in VERDICTS[1:]:
        named = [result for result in results if result.verdict == verdict]
        if named:
            lines += ["", verdict.capitalize() + ":"]
            lines += [f"  {_line(r.mutant)} :: {r.note}" for r in named]
    lines += ["", f"{'made':12}{len(results):5}"]
    lines += [f"{verdict:12}{count[verdict]:5}" for verdict in VERDICTS]
    without = 100.0 * count[KILLED] / max(len(results) - count[HARMLESS], 1)
    lines.append(
        f"{_score(results):.0f}% of those that are not equivalent die, "
        f"{without:.0f}% if those that time out do not count"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
