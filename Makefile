# Everything runs in .venv, made on first use from Python 3.11 and PyPI alone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: setup demo test check bench mutants docs clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup  ## The main job, end to end, on the bundled company graph.
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/company/demo.sh

test: setup  ## Every test.
	$(BIN)/pytest

check: setup  ## Formatting, lint, types, layers.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup  ## Timings, printed as a table.
	$(BIN)/python benchmarks/compile.py
	$(BIN)/python benchmarks/commits.py

mutants: setup  ## Breaks the model ten times; the logic tests must notice each time.
	$(BIN)/python scripts/check_model_mutants.py

docs: setup  ## Regenerate docs/reference.
	$(BIN)/python scripts/generate_reference.py

clean:
	rm -rf .venv .hypothesis .mypy_cache .ruff_cache .import_linter_cache
