"""Try new random examples of the tests that hypothesis drives, for some time.

`make test` tries the same examples everywhere. This draws others, round after round,
goes on past failures, and lists each with a command that repeats it.

    python tools/explore.py --minutes 20 tests/properties
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", re.M)


def run(seed: int, options: list[str], seconds: float, log: Path) -> list[str]:
    """One round, no longer than this; names of the tests that failed."""
    with log.open("w+", encoding="utf-8") as file:
        process = subprocess.Popen(
            [*command(seed), *options], cwd=ROOT, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            broken = process.wait(seconds) not in (0, 1)  # passed, or failed
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # pytest sums up and ends
            process.wait()
            broken = False
        file.seek(0)
        text = file.read()
    if broken:
        raise SystemExit(text)
    return FAILURE.findall(text)


def command(seed: int) -> list[str]:
    """How to try the examples of a seed."""
    profile = ["--hypothesis-profile=explore", f"--hypothesis-seed={seed}"]
    return [sys.executable, "-m", "pytest", "-q", *profile]


def main() -> int:
    """Read the arguments, run rounds until time is over, and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", default="auto", help="workers of pytest-xdist")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "explore")
    parser.add_argument("tests", nargs="*", default=["tests"])
    args = parser.parse_args()
    args.logs.mkdir(parents=True, exist_ok=True)
    options = ["-m", "hypothesis", "-n", args.jobs, "-rfE", "--color=no", *args.tests]
    end, seed, failed = time.monotonic() + 60 * args.minutes, args.seed, set()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    last = seed + args.rounds
    while (left := end - time.monotonic()) > 0 and seed < last:
        log = args.logs / f"{seed}.txt"
        for test in run(seed, options, left, log):
            if test not in failed:
                failed.add(test)
                again = " ".join([*command(seed), f"'{test}'"])
                print(f"FAILED {test}\n  see {log}\n  {again}", flush=True)
        seed += 1
    print(f"{seed - args.seed} round(s), {len(failed)} test(s) failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
