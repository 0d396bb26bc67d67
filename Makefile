# Two commands for a fresh machine: `make demo` and `make test`. Both prepare .venv by themselves.
# While you work: `make check`, the fast part of `make test`.
PYTHON ?= python3
TORCH ?= 2.13.0  # the other end of the range that is supported: make test TORCH=2.9.1
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
CORE := .venv/.core
READY := .venv/.ready
SECONDS ?= 600  # of `make fuzz` and `make stress`

# Where the machine forbids compiled files, each of the hundreds of processes of the tests would compile torch anew.
unexport PYTHONDONTWRITEBYTECODE
# Tests run on every core already: threads of scikit-learn beside them would only wait for each other.
fast unit fuzz: export OMP_NUM_THREADS := 1

.PHONY: setup demo check test lint types contracts fast unit docs bench bench-page bench-rightsize bench-surgeon bench-scenes stress fuzz clean

# What the demo needs: it writes an ONNX file too. torch comes first and by exact version: a plain `torch` may pull gigabytes of accelerator packages.
$(CORE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) torch==$(TORCH)
	$(PIP) -e '.[onnx]'
	touch $(CORE)

# What the tests, the docs and the benchmarks need besides.
$(READY): $(CORE)
	$(PIP) -e '.[sound,faces,tables,onnx,hub,docs,dev]'
	touch $(READY)

setup: $(READY)

demo: $(CORE)
	$(BIN)/topiarist rightsize digits --effort quick --out demo

# Types are checked on one core, while tests run on all.
check: lint contracts
	$(MAKE) --jobs=2 types fast

test: lint contracts
	$(MAKE) --jobs=2 types unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports --no-cache

fast: setup
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

unit: setup
	$(BIN)/pytest -n auto --dist worksteal

# What takes minutes; then the page of all benchmarks from what is in benchmarks/results.
bench: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[benchmarks,zoo]'
	$(BIN)/python -m benchmarks.stacked_training
	$(BIN)/python -m benchmarks.refit
	$(BIN)/python -m benchmarks.surgery_speed
	$(BIN)/python -m benchmarks.tracing_speed
	$(BIN)/python -m benchmarks.genetic
	$(BIN)/python -m benchmarks.distinctiveness
	$(BIN)/python -m benchmarks.masked_training
	$(BIN)/python -m benchmarks.log_mel
	$(BIN)/python -m benchmarks.ensemble
	$(BIN)/python -m benchmarks.surgeon_parts rescue
	$(BIN)/python -m benchmarks.finer
	$(BIN)/python -m benchmarks.embeddings
	$(BIN)/python -m benchmarks.files_passed
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.search digits
	$(BIN)/python -m benchmarks.pruning digits
	$(BIN)/python -m benchmarks.unstructured
	$(BIN)/python -m benchmarks.estimator
	$(BIN)/python -m benchmarks.study
	$(BIN)/python -m benchmarks.page

# The page alone, from what was measured before.
bench-page: setup
	$(BIN)/python -m benchmarks.page

docs: setup
	$(BIN)/mkdocs build --strict

# Ten seeds of digits, about 10 minutes; with `IMAGES=folder`, a residual network on Fashion-MNIST instead, as long.
bench-rightsize: setup
	$(BIN)/python -m benchmarks.rightsize $(IMAGES)
	$(BIN)/python -m benchmarks.page

# The Surgeon on images, an hour or more for each set; it resumes: `make bench-surgeon IMAGES=folder`.
bench-surgeon: setup
	$(BIN)/python -m benchmarks.surgeon $(IMAGES)
	$(BIN)/python -m benchmarks.page

# Sixty trainings on recordings, about an hour and a half: `make bench-scenes SOUNDS=folder`. It goes on where it stopped.
bench-scenes: setup
	$(BIN)/python -m benchmarks.scenes $(SOUNDS)
	$(BIN)/python -m benchmarks.page

# Kills trainings, Surgeons, rightsizings, studies and their workers, fills disks, sets clocks back; so many seconds for
# each of the three, and what was begun by then is ended: `make stress SECONDS=1800`.
stress: setup
	$(BIN)/python -m benchmarks.stress --seconds $(SECONDS)
	$(BIN)/python -m benchmarks.stress_rightsize --seconds $(SECONDS)
	$(BIN)/python -m benchmarks.stress_study --seconds $(SECONDS)
	$(BIN)/python -m benchmarks.page

# Damaged files for every reader, so many seconds in all: `make fuzz SECONDS=3600`. Then the properties of the tests on
# examples that were never tried before, ten times over. A failure is kept, and prints how to repeat it.
fuzz: setup
	$(BIN)/python -m benchmarks.fuzz --seconds $(SECONDS)
	$(BIN)/python -m benchmarks.page
	for round in 1 2 3 4 5 6 7 8 9 10; do $(BIN)/pytest -n auto --dist worksteal -m hypothesis --hypothesis-profile=fuzz || exit 1; done

clean:
	rm -rf .venv build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
