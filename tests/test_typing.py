"""Types for users: a script in mypy's strict mode, and complete annotations."""

import inspect
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from test_docs import OBJECTS

import sklearn_latent

SCRIPT = Path(__file__).parent / "typed_user_script.py"
ROOT = Path(sklearn_latent.__file__).parent.parent


def run_mypy(cache):
    environment = os.environ.copy()
    # Installed packages are found without, and must not be on this path.
    if "site-packages" not in ROOT.parts:
        environment["MYPYPATH"] = str(ROOT)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--config-file=", f"--cache-dir={cache}", str(SCRIPT)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )


def test_a_user_sees_types(tmp_path):
    pytest.importorskip("mypy")
    done = run_mypy(tmp_path)
    shown = dict(re.findall(r":(\d+): note: Revealed type is \"(.*)\"", done.stdout))
    wrong = re.findall(r"^.*: error: .*$", done.stdout, flags=re.M)
    for number, line in enumerate(SCRIPT.read_text().splitlines(), 1):
        if line.startswith("reveal_type("):
            expected = line.partition("  # ")[2]
            # Names come with their modules.
            revealed = re.sub(r"\b(?:\w+\.)+", "", shown.get(str(number), "nothing"))
            if expected not in revealed or revealed == "Any":
                wrong.append(f"{line} is {revealed}")
    assert not wrong, "\n".join([*wrong, done.stderr])


@pytest.mark.filterwarnings("ignore")
def test_the_script_runs(capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(SCRIPT.read_text(), SCRIPT, "exec"), {"__name__": "script"})
    plt.close("all")


def public_methods(cls):
    """Methods that the library defines; those of scikit-learn have no types."""
    for name, member in inspect.getmembers(cls, inspect.isroutine):
        ours = "sklearn_latent" in str(getattr(member, "__module__", ""))
        if ours and (name == "__init__" or not name.startswith("_")):
            yield name, member


@pytest.mark.parametrize("name", OBJECTS)
def test_public_signatures_are_annotated(name):
    item = OBJECTS[name]
    methods = public_methods(item) if inspect.isclass(item) else [(name, item)]
    missing = []
    for method, function in methods:
        signature = inspect.signature(function)
        missing += [
            f"{method}({key})"
            for key, parameter in signature.parameters.items()
            if key != "self" and parameter.annotation is parameter.empty
        ]
        if method != "__init__" and signature.return_annotation is signature.empty:
            missing.append(f"{method}() ->")
    assert not missing


def test_types_are_shipped():
    assert (Path(sklearn_latent.__file__).parent / "py.typed").exists()
