"""How many files of the library one call passes: the figures of docs/architecture.md.

`python -m benchmarks.files_passed` prints, for each of five calls on a small perceptron, the number of files under
`src/topiarist` of which at least one function runs, and the number per folder; `--list` adds the files themselves.
Imports do not count: modules are loaded before, and code at the top of a module or in the body of a class is left out.
"""

import inspect
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import topiarist
from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import Budget, Study, TrainConfig, load_data, methods, models, resize, rightsize, surgery, train
from topiarist.data import Part

HOME = Path(topiarist.__file__).parent
FUNCTION = (
    inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
)  # of the code of functions; class bodies and modules have not both


def files_passed(call: Callable[[], object]) -> list[str]:
    """Run a call, and return the files of the library whose functions it runs, relative to `src/topiarist`."""
    seen: set[CodeType] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    run = {Path(code.co_filename) for code in seen if code.co_flags & FUNCTION == FUNCTION}
    return sorted(path.relative_to(HOME).as_posix() for path in run if path.is_relative_to(HOME))


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the five calls by name; what they need is made now. A study writes to the folder."""
    data = load_data("iris")
    model = models.mlp([4, 16, 16, 3])
    train(model, data, TrainConfig(epochs=30, learning_rate=0.01))
    assert isinstance(data.train, Part)
    x = data.train.x
    study = Study(
        data="iris",
        model={"hidden": [16]},
        training={"epochs": 3},
        folds=3,
        methods=[{"name": "none"}, {"name": "distinctiveness", "keep_fraction": 0.5}],
    )
    surgeon = methods.Surgeon(training=TrainConfig(epochs=20, batch_size=16, schedule="cosine"))
    return {
        "surgery.remove with refit": lambda: surgery.remove(model, x[:2], units={"hidden0": [0, 3, 5]}, calibration=x),
        "resize with a budget": lambda: resize(model, data, budget=Budget(file_kb=2)),
        "the Surgeon": lambda: resize(model, data, surgeon),
        "study run": lambda: study.run(folder / "study"),
        "rightsize": lambda: rightsize(data, lambda: models.mlp([4, 16, 16, 3])),
    }


def main() -> None:
    """Print a row per call, and write the numbers of files."""
    warnings.simplefilter("ignore")
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            files = files_passed(call)
            figures.append(Figure(case=name, contender="files", measure="count", values=(len(files),)))
            folders = Counter(path.partition("/")[0].removesuffix(".py") for path in files)
            print(f"{name}: {len(files)} files;", ", ".join(f"{count} {where}" for where, count in folders.items()))
            if "--list" in sys.argv:
                print(*(f"    {path}" for path in files), sep="\n")
    sheet = Sheet(**stamp("python -m benchmarks.files_passed"), figures=tuple(figures))
    print(write_results("files_passed", sheet))


if __name__ == "__main__":
    main()
