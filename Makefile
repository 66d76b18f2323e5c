# Everything runs in .venv, made on first use from Python 3.11 and PyPI alone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# The order of the tests is drawn from it: the same one every time, and another one on demand.
SEED ?= 1
PYTEST := $(BIN)/pytest --randomly-seed=$(SEED)
# Without bytecode, every process that a test starts compiles the product again.
unexport PYTHONDONTWRITEBYTECODE
# Percent of the lines of src. Five files of the quick tests alone reach 54.7: raise it after a run.
COVERAGE_MIN ?= 54

.PHONY: setup demo dist test test-slow test-all test-s3 test-spark coverage check bench soak soak-pipelines mutants docs site test-adapters clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup  ## A graph of the bundled company: load, branch, change, merge, travel in time, check.
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/company/demo.sh

test: setup  ## Every part of the product, in a few minutes.
	$(PYTEST) -m 'not slow'

test-slow: setup  ## What `make test` leaves out: faults, races, Spark, more generated examples.
	$(PYTEST) --hypothesis-profile suite -m 'slow or hypothesis'

test-all: setup  ## Every test.
	$(PYTEST) --hypothesis-profile suite

test-s3: setup  ## The tests of whole graphs, all of them on an S3 server on the loopback interface.
	$(BIN)/pytest --on s3 tests/cases tests/faults tests/e2e tests/unit/versioning tests/unit/engine tests/unit/cli

test-spark: setup  ## The cases of reads, all of them on Spark in this process.
	$(BIN)/pytest --arm spark -n0 tests/cases

coverage: setup  ## The tests of `make test` again, with the lines they reach; fails below the floor.
	$(PYTEST) -m 'not slow' --cov --cov-report=term --cov-fail-under=$(COVERAGE_MIN)

check: setup  ## Formatting, lint, types, layers.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

dist: setup  ## A wheel and an sdist in dist; built twice, and the same bytes each time.
	$(BIN)/python scripts/build_dist.py dist

.venv/bench: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

bench: .venv/bench  ## Timings, printed as tables; queries and search beside other databases.
	$(BIN)/python benchmarks/compile.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/commits.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/loads.py
	$(BIN)/python benchmarks/mutations.py
	$(BIN)/python benchmarks/merges.py
	$(BIN)/python benchmarks/scale.py
	PYTHONPATH=tests $(BIN)/python benchmarks/scale_requests.py 100000 1000000
	$(BIN)/python benchmarks/reads_beside_writes.py
	$(BIN)/python benchmarks/queries.py
	$(BIN)/python benchmarks/language.py
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/clusters.py
	$(BIN)/python benchmarks/hostile.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/algorithms.py
	$(BIN)/python benchmarks/server.py --mixed 60
	$(BIN)/python benchmarks/web.py
	$(BIN)/python benchmarks/spark_load.py
	$(BIN)/python benchmarks/pipeline_cost.py

soak: setup  ## Writers and pipelines killed, agents that merge, random lives and examples.
	$(BIN)/pytest -m hypothesis --hypothesis-profile nightly --timeout 3600
	PYTHONPATH=tests $(BIN)/python -m faults.soak 200
	PYTHONPATH=tests $(BIN)/python -m faults.damage 2000
	PYTHONPATH=tests $(BIN)/python -m faults.feed_soak 50
	PYTHONPATH=tests $(BIN)/python -m e2e.agents.crowd 16 10 20
	PYTHONPATH=tests $(BIN)/python -m faults.lives 1000
	PYTHONPATH=tests $(BIN)/python -m fuzz.merging.lives 2000
	PYTHONPATH=tests $(BIN)/python -m faults.cleanup_soak 60
	PYTHONPATH=tests $(BIN)/python -m faults.proposal_soak 100
	PYTHONPATH=tests $(BIN)/python -m faults.pauses
	PYTHONPATH=tests $(BIN)/python -m faults.server_soak 50
	PYTHONPATH=tests $(BIN)/python -m faults.http_fuzz 10000
	PYTHONPATH=tests $(BIN)/python -m spark.pipeline_soak 20
	PYTHONPATH=tests $(BIN)/python -m spark.stream_soak 20

soak-pipelines: setup  ## 2,000 random histories of sources of pipelines against a model.
	PYTHONPATH=tests $(BIN)/python -m unit.pipelines.source_histories 2000

mutants: setup  ## Breaks the model ten times; the logic tests must notice each time.
	$(BIN)/python scripts/check_model_mutants.py

build/adapters-venv: pyproject.toml constraints.txt tests/frameworks/requirements.txt
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --constraint constraints.txt --editable '.[langchain,lightrag,llama-index]' \
		--requirement tests/frameworks/requirements.txt
	touch $@

test-adapters: build/adapters-venv  ## The adapters of other frameworks, by the tests of these frameworks.
	build/adapters-venv/bin/python -m pytest -c tests/frameworks/pytest.ini --confcutdir tests/frameworks tests/frameworks

build/site-venv: docs/site/requirements.txt constraints.txt
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --constraint constraints.txt --requirement docs/site/requirements.txt
	touch $@

site: build/site-venv  ## The pages as a site in build/site; warnings and broken links are errors.
	build/site-venv/bin/python scripts/build_site.py

docs: setup  ## Regenerate docs/reference.
	$(BIN)/python scripts/async_stub.py
	$(BIN)/python scripts/generate_reference.py

clean:
	rm -rf .venv .hypothesis .mypy_cache .ruff_cache .import_linter_cache
