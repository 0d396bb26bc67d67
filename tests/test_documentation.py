"""The examples of the documentation run, and its site needs nothing from elsewhere."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas
import pytest
import typer.main
from sklearn.datasets import load_iris

import topiarist
from tests.rightsizing.tasks import use_small_plan
from topiarist.cli import main
from topiarist.cli.program import COMMANDS, build_app
from topiarist.measurement import Budget
from topiarist.methods import FineTuning, registered, registry
from topiarist.settings import Settings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAV = re.findall(r"[\w/]+\.md$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2], re.MULTILINE)
PAGES = [ROOT / "README.md", *(DOCS / page for page in NAV)]
SOURCES = ROOT / "src" / "topiarist"
# Where the settings of each method stand; those of a method as published are on the page of ours.
PAGE_OF = {"genetic-front": "genetic"}
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


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an example register methods that other tests do not see."""
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let examples write into a folder of their own, and rightsize with little work."""
    monkeypatch.chdir(tmp_path)
    use_small_plan(monkeypatch)


def run_examples(page: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    for code in (code for name, code in blocks("python") if name == page):
        exec(compile(code, page, "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*treespec.*:FutureWarning")  # of Lightning, about torch
@pytest.mark.filterwarnings("ignore::UserWarning:pytorch_lightning")  # its advice
@pytest.mark.usefixtures("own_registry", "in_a_folder")
@pytest.mark.parametrize("page", sorted({page for page, _ in blocks("python")} - {"docs/add_a_method.md"}))
def test_python_examples_of_a_page_run_one_after_the_other(page: str) -> None:
    run_examples(page)


@pytest.mark.slow
@pytest.mark.usefixtures("own_registry", "in_a_folder")
def test_the_example_of_a_method_gets_into_rightsize_the_report_and_a_study(tmp_path: Path) -> None:
    names = run_examples("docs/add_a_method.md")
    method = names["LargestNorm"].name
    assert method in registered()
    assert names["small"].after.file_kb <= 6
    assert {network.method for network in names["result"].record.networks} == {None, method}
    assert method in (tmp_path / "largest-norm" / "report.html").read_text()
    assert any(method in name for name in names["results"].summary()["configuration"])


@pytest.mark.slow
@pytest.mark.filterwarnings("default::topiarist.errors.TopiaristWarning")  # notes on what was found
@pytest.mark.usefixtures("in_a_folder")
def test_shell_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def settings_shown(page: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", (DOCS / "methods" / f"{page}.md").read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", registered())
def test_the_tables_of_settings_have_every_setting(name: str) -> None:
    page = name.removeprefix("published-")
    assert set(registered()[name].model_fields) <= settings_shown(PAGE_OF.get(page, page))


@pytest.mark.parametrize("settings", [FineTuning, Budget])
def test_the_page_of_methods_has_what_they_share(settings: type[Settings]) -> None:
    text = (DOCS / "methods" / "index.md").read_text()
    for name in set(settings.model_fields) - {"kind"}:
        assert f"`{name}`" in text or f"`{name}=" in text, name


def commands_of(name: str) -> dict[str, set[str]]:
    """Return a command, or the commands of a group, with their options."""
    command: Any = typer.main.get_command(build_app([name]))
    command = command.commands[name]
    inner = {f"{name} {each}": found for each, found in getattr(command, "commands", {}).items()}
    return {
        words: {option for each in found.params for option in (*each.opts, *each.secondary_opts)}
        for words, found in (inner or {name: command}).items()
    }


def code_in(page: Path) -> list[str]:
    """Return the lines of shell examples, and what stands between backticks in the text."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    shell = "\n".join(block for kind, block in fence.findall(page.read_text()) if kind in ("sh", "bash", "console"))
    lines = [line.partition("#")[0].removeprefix("$ ") for line in shell.replace("\\\n", " ").splitlines()]
    inline = re.findall(r"`([^`]+)`", fence.sub("", page.read_text()))
    return [line for line in lines if line.startswith("topiarist ")] + [" ".join(text.split()) for text in inline]


def test_commands_and_options_in_the_text_exist() -> None:
    known = {words: options for name in COMMANDS for words, options in commands_of(name).items()}
    every = set().union(*known.values()) | {"--help", "--version"}
    own = DOCS / "add_a_method.md"  # its commands are those of a method that is not in the library
    for page in {*PAGES, ROOT / "CONTRIBUTING.md"} - {own}:
        for text in code_in(page):
            named_command = re.match(r"topiarist ([a-z]\S*)(?: ([a-z][a-z-]*))?", text)
            words = " ".join(word for word in named_command.groups() if word) if named_command else ""
            command = next((each for each in (words, words.partition(" ")[0]) if each in known), "")
            assert not words or command or words in COMMANDS or "…" in text, (named(page), text)
            if words or text.startswith("--"):
                options = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", text))
                assert options <= known.get(command, every) | {"--help", "--version"}, (named(page), text)


def test_files_that_the_map_names_exist() -> None:
    text = (DOCS / "architecture.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    paths = set(re.findall(r"(?<![\w/.<])((?:\w+/)+\w+\.py)\b", text))
    assert len(paths) > 40
    for path in paths:
        assert (SOURCES / path).exists() or (ROOT / path).exists(), path


def test_the_map_has_the_layers_of_the_import_contract() -> None:
    contract = (ROOT / "pyproject.toml").read_text().partition("\nlayers = [")[2].partition("]")[0]
    layers = [layer.replace("topiarist.", "") for layer in re.findall(r'"([^"]+)"', contract)]
    assert "\n".join(["```", *layers, "```"]) in (DOCS / "architecture.md").read_text()


def test_the_map_has_every_room() -> None:
    rooms = (DOCS / "architecture.md").read_text().partition("src/topiarist/\n")[2].partition("```")[0]
    listed = set(re.findall(r"^  (\w+(?:\.py|/))", rooms, re.MULTILINE))
    there = {f"{path.name}/" if path.is_dir() else path.name for path in SOURCES.iterdir()}
    assert listed == {name for name in there if name.endswith((".py", "/"))} - {"__pycache__/"}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), (named(page), target)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    if find_spec("material") is None or find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs-material or mkdocstrings is not installed: they are in the extra docs")
    # Not `--quiet`: it keeps warnings from being counted, and the build passes whatever they say.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    files = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css")]
    assert len(files) > len(NAV)
    for path in files:
        assert FETCHED.search(path.read_text()) is None, path.name
    if shutil.which("chromium") is not None and shutil.which("chromedriver") is not None:
        assert "surgery.html" in found_by_search(tmp_path, "settling")


def found_by_search(site: Path, word: str) -> str:
    """Return the addresses that the search of a site finds, opened from the disk."""
    from selenium import webdriver
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for option in ("--headless", "--no-sandbox", "--disable-background-networking", "--window-size=1300,900"):
        options.add_argument(option)
    service = webdriver.ChromeService(executable_path=str(shutil.which("chromedriver")))
    with webdriver.Chrome(options=options, service=service) as browser:
        wait = WebDriverWait(browser, 60)
        browser.get((site / "index.html").as_uri())
        field = wait.until(lambda _: browser.find_element("css selector", "input.md-search__input"))
        wait.until(lambda _: field.is_displayed())
        field.click()
        field.send_keys(word)
        found = wait.until(lambda _: browser.find_elements("css selector", ".md-search-result__link"))
        return " ".join(str(link.get_attribute("href")) for link in found)


def test_the_reference_has_every_public_name() -> None:
    text = (DOCS / "reference.md").read_text()
    for name in topiarist.__all__:
        assert re.search(rf"^::: topiarist\.(?:[\w.]+\.)?{name}$", text, re.MULTILINE), name
