"""What the README promises is so."""

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def code_blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.S | re.M)


@pytest.mark.parametrize("code", code_blocks("python"))
def test_python_blocks_run(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_there_is_python_to_run():
    assert code_blocks("python")


def test_demo_learns_draws_and_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    plt.close("all")
    out = capsys.readouterr().out
    assert "found 8, of which 8 are right" in out
    # Every learned prior is within four standard errors of the true one.
    rows = re.findall(r"(0\.\d+) +(0\.\d+) ± (0\.\d+)", out)
    assert len(rows) == 6
    for true, learned, error in (map(float, row) for row in rows):
        assert abs(learned - true) < 4 * error + 0.001
    correlations = re.search(r"correlation with the true ones: (.*)", out).group(1)
    assert [float(value) > 0.9 for value in correlations.split(", ")] == [True] * 3
    for questions in ("sleep, energy, appetite", "pain, walking, stairs"):
        assert f"3 states behind {questions}\n" in out
    assert (tmp_path / "demo.png").stat().st_size > 20_000
    page = Path(out.splitlines()[-1].partition(": ")[2])
    assert page.parent == tmp_path
    assert "</html>" in page.read_text(encoding="utf-8")


def test_the_picture_is_small():
    pictures = re.findall(r"!\[[^\]]+\]\(([A-Za-z./_]+)\)", README)
    assert pictures
    for path in pictures:
        assert (ROOT / path).stat().st_size < 100_000


def test_first_shell_commands():
    commands = "".join(code_blocks("sh")).splitlines()
    assert commands[:2] == ["make demo", "make test"]


def test_make_targets_that_are_mentioned_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_files_that_are_mentioned_exist():
    for path in re.findall(r"\]\(([A-Za-z./_]+)\)", README):
        assert (ROOT / path).exists(), path
