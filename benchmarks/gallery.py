"""The pictures of the gallery, each written by the examples of its page: `python -m benchmarks.gallery [page …]`."""

import re
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path
from shutil import copy

DOCS = Path(__file__).parents[1] / "docs"
PAGES = DOCS / "gallery"


def main() -> None:
    """Run the examples of pages, all unless named, and keep their pictures."""
    for name in sys.argv[1:] or sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index"):
        text = (PAGES / f"{name}.md").read_text()
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            exec(compile(code, name, "exec"), {"__name__": "example"})
            copy(f"{name}.png", DOCS / "images" / "gallery" / f"{name}.png")
        print(f"{name}: {time.process_time() - began:.1f} s of the processor")


if __name__ == "__main__":
    main()
