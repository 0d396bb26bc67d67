"""The examples of the documentation run, and its site needs nothing from elsewhere."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas
import pytest
from sklearn.datasets import load_iris

from topiarist.cli import main
from topiarist.methods import Distinctiveness, Factorisation, FineTuning, Genetic, GeneticFront, Magnitude, Surgeon
from topiarist.settings import Settings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAV = re.findall(r"[\w/]+\.md$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2], re.MULTILINE)
PAGES = [ROOT / "README.md", *(DOCS / page for page in NAV)]
ELSEWHERE = r"""=["']?(?:https?:)?//"""
FETCHED = re.compile(  # whatever a browser fetches by itself; links that a reader may follow are none of it
    rf"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc{ELSEWHERE}"""
    rf"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|pre|dns-|icon))[^>]*\bhref{ELSEWHERE}"""
    r"""|@import\s+["']?(?:https?:)?//|url\(["']?(?:https?:)?//"""
)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(named(page), block) for page in PAGES for block in pattern.findall(page.read_text())]


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(NAV) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


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


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ("index", FineTuning),
        ("distinctiveness", Distinctiveness),
        ("genetic", Genetic),
        ("genetic", GeneticFront),
        ("magnitude", Magnitude),
        ("surgeon", Surgeon),
        ("factorisation", Factorisation),
    ],
)
def test_the_table_of_options_has_every_setting(page: str, settings: type[Settings]) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "methods" / f"{page}.md").read_text(), re.MULTILINE)
    assert set(settings.model_fields) - {"kind"} <= set(rows)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), (named(page), target)


def test_the_site_is_built_without_a_warning_and_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    if find_spec("mkdocs") is None or find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: it is in the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    files = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css")]
    assert len(files) > len(NAV)
    for path in files:
        assert FETCHED.search(path.read_text()) is None, path.name
