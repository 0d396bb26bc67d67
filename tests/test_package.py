"""What is handed out: a wheel and an archive of sources that are whole, and run with nothing but what they declare."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy
import pytest
from packaging.requirements import Requirement
from PIL import Image
from safetensors.numpy import save_file

from tests.conftest import POSIX_ONLY

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = (ROOT / ".github" / "workflows" / "test.yml").read_text()

# Runs each call as the command does, in one process: importing torch takes longer than all of them.
CALLS = """
import contextlib, io, json, sys
from topiarist.cli import main
said = {}
for call in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["topiarist", *call.split()]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            said[call] = [ended.code, out.getvalue(), err.getvalue()]
print(json.dumps(said))
"""
DEMO = "rightsize iris --effort quick --methods distinctiveness --out demo"
DOCTOR = "doctor --json"
MISSING = {  # a call, what it wants to do, and the extra that it needs
    "export demo/model.safetensors --onnx m.onnx": ("ONNX export", "onnx"),
    "data show t.parquet --target y": ("reading Parquet files", "tables"),
    "data show t.xlsx --target y": ("reading Excel files", "tables"),
    "data show sounds": ("reading sound", "sound"),
    "reproduce faces --quick --data faces --out f": ("finding faces", "faces"),
    "anatomy hub": ("a Hugging Face folder", "hub"),
}


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited is not None and newest is not None
    assert (cited[1], newest[1]) == (version, version)


def test_the_workflow_runs_what_make_test_runs() -> None:
    recipe = (ROOT / "Makefile").read_text()
    targets = re.search(r"^test: (.+)\n\t\$\(MAKE\) --jobs=2 (.+)$", recipe, re.MULTILINE)
    assert targets is not None
    commands = []
    for target in " ".join(targets.groups()).split():
        rule = re.search(rf"^{target}:.*\n((?:\t.+\n)+)", recipe, re.MULTILINE)
        assert rule is not None, target
        commands += [line.removeprefix("\t$(BIN)/") for line in rule[1].splitlines()]
    assert commands == re.findall(r"- run: (?!python -m pip)(.+)", WORKFLOW)
    torch = re.search(r"^TORCH \?= (\S+)", recipe, re.MULTILINE)
    assert torch is not None and f"torch=={torch[1]} " in WORKFLOW
    everything = re.search(r"^\$\(READY\):.*\n.*-e '(.+)'", recipe, re.MULTILINE)
    assert everything is not None and re.findall(r'-e "(.+)"', WORKFLOW) == [everything[1]]


def test_what_windows_lacks_is_left_out_there() -> None:
    lacking = re.compile(
        r"""os\.(mkfifo|geteuid|killpg)|import resource|signal\.SIGKILL|send_signal\(signal\.SIGINT|"/dev/"""
        r"""|st_mode & 0o|study(\.| import )drivers|/proc/self"""
    )
    for path in (ROOT / "tests").rglob("test_*.py"):
        name, text = path.relative_to(ROOT / "tests").as_posix(), path.read_text()
        guarded = name in POSIX_ONLY or 'sys.platform == "win32"' in text or "skipif" in text
        assert guarded or lacking.search(text) is None, name


def test_the_encoding_of_a_text_is_named() -> None:
    """Windows would take another than UTF-8."""
    for path in (ROOT / "src").rglob("*.py"):
        for call in re.findall(r"(?:read|write)_text\([^()]*(?:\([^()]*\)[^()]*)*\)", path.read_text()):
            assert "encoding=" in call, (path.name, call)


def declared(names: list[str]) -> set[str]:
    """Return the distributions that these names need, themselves included, of what is installed here."""
    found: set[str] = set()
    open_names = [(Requirement(name), "") for name in names]
    while open_names:
        needed, extra = open_names.pop()
        if needed.marker is not None and not needed.marker.evaluate({"extra": extra}):
            continue
        try:
            requirements = distribution(needed.name).requires or []
        except PackageNotFoundError:
            continue  # of another platform
        for wanted in ("", *needed.extras):
            if f"{needed.name}[{wanted}]" not in found:
                found.add(f"{needed.name}[{wanted}]")
                open_names += [(Requirement(line), wanted) for line in requirements]
    return {name.partition("[")[0] for name in found}


def link(names: set[str], packages: Path) -> None:
    """Let an environment see these distributions of the present one, and no others."""
    for name in sorted(names):
        installed = distribution(name)
        for top in {path.parts[0] for path in installed.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(installed.locate_file(top))))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def prepare(folder: Path) -> None:
    """Write files that only extras can read."""
    for name in ("t.parquet", "t.xlsx", "sounds/a/1.wav", "sounds/b/1.wav"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    for name in ("faces/sad/1.png", "faces/sad/2.png", "faces/happy/1.png", "faces/happy/2.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (32, 32)).save(folder / name)
    (folder / "hub").mkdir()
    (folder / "hub" / "config.json").write_text('{"architectures": ["BertModel"], "model_type": "bert"}')
    save_file({"weight": numpy.zeros(1)}, folder / "hub" / "model.safetensors")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_the_wheel_runs_with_what_it_declares_and_says_what_extras_bring(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob(f"topiarist-{PROJECT['version']}-py3-none-any.whl")
    (sources,) = built.glob(f"topiarist-{PROJECT['version']}.tar.gz")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in inside} == {"topiarist", f"topiarist-{PROJECT['version']}.dist-info"}
    assert {"topiarist/py.typed", "topiarist/report/templates/page.html.j2"} <= inside
    with tarfile.open(sources) as archive:
        kept = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "tests/test_package.py", "docs/index.md"} <= kept

    place = tmp_path / "environment"
    venv.create(place)
    (packages,) = place.glob("lib/python*/site-packages")
    link(declared(PROJECT["dependencies"]), packages)
    python = place / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    clean = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    version = subprocess.run(
        [place / "bin" / "topiarist", "--version"], env=clean, capture_output=True, text=True, check=True
    )
    assert version.stdout.strip() == PROJECT["version"]

    prepare(tmp_path)
    calls = json.dumps([DEMO, DOCTOR, *MISSING])
    ran = subprocess.run(
        [python, "-c", CALLS, calls], env=clean, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    code, out, err = said.pop(DEMO)
    assert code == 0 and (tmp_path / "demo" / "model.safetensors").exists(), err
    needs = {
        call: f"{what} needs the extra '{extra}': pip install \"topiarist[{extra}]\"\n"
        for call, (what, extra) in MISSING.items()
    }
    assert out.startswith("From ") and err.endswith(f"no ONNX file: {next(iter(needs.values()))}")
    code, out, err = said.pop(DOCTOR)
    found = json.loads(out)
    assert (code, err, found["topiarist"], found["onnx_providers"]) == (0, "", PROJECT["version"], [])
    assert all(package["suits"] for package in found["packages"])
    assert {name: extra["install"] for name, extra in found["extras"].items()} == {
        extra: f'pip install "topiarist[{extra}]"' for extra in {"notebooks", *(extra for _, extra in MISSING.values())}
    }
    assert said == {call: [2, "", f"topiarist: {text}"] for call, text in needs.items()}
