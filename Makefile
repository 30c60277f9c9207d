# `make demo` and `make test` need Python 3.11 or newer and git; everything else they install into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types bench clean

demo: $(STAMP)
	$(BIN)/steelyard info panda
	$(BIN)/steelyard check panda
	mkdir -p demo
	$(BIN)/steelyard excite panda --starts 1 --output demo/trajectory.csv --plot demo/trajectory.html
	$(BIN)/steelyard simulate panda --trajectory demo/trajectory.csv --torque-noise 0.1 --output demo/recording.npz

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/kernels.py

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Steelyard needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
