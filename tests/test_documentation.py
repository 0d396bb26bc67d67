"""The examples of the documentation run."""

import re
import shlex
import sys
from pathlib import Path

import pandas
import pytest
from sklearn.datasets import load_iris

from topiarist.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(page.name, block) for page in PAGES for block in pattern.findall(page.read_text())]


@pytest.mark.parametrize("page", sorted({page for page, _ in blocks("python")}))
def test_python_examples_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example"}
    for code in (code for name, code in blocks("python") if name == page):
        exec(compile(code, page, "exec"), names)


def test_shell_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    iris = load_iris(as_frame=True)
    table: pandas.DataFrame = iris.data
    table.assign(species=iris.target_names[iris.target]).to_csv("flowers.csv", index=False)
    for _, declared in blocks("toml"):
        Path(declared.splitlines()[0].removeprefix("# ")).write_text(declared)
    lines = [line for _, block in blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("topiarist ")]
    assert len(commands) >= 5
    for command in commands:
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, command
    assert (tmp_path / "predictions.csv").read_text().startswith("prediction,probability,p(setosa)")


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), (page.name, target)
