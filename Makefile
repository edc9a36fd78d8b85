# fogline: `make demo` and `make test` set up all they need in .venv and do the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
# what the README installs, with no pyarrow, pandas or other frames: readers take other ways there
BARE   := .venv-bare
BARE_STAMP := $(BARE)/.ready
# what builds the documentation site: far less than what the tests need
DOCS   := .venv-docs
DOCS_STAMP := $(DOCS)/.ready
# what the README installs and no more, for the README's own commands
README := .venv-readme
# dbt, whose wishes about other packages' versions are not ours
DBT    := .venv-dbt
DBT_STAMP := $(DBT)/.ready
# Sail, a server of Spark Connect, which takes older clients than Spark itself; and fakesnow, which takes an older one of
# Snowflake
CONNECT := .venv-connect
CONNECT_STAMP := $(CONNECT)/.ready
# the arithmetic here is many small problems: one thread each is fastest and makes timings comparable
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# arrays of a few megabytes come and go all the time: giving their memory back late saves some of the time of the tests
export MALLOC_MMAP_THRESHOLD_ ?= 268435456
export MALLOC_TRIM_THRESHOLD_ ?= 1073741824

# the tests that `make quick` runs, for pytest: only files in which something is marked are collected
QUICK   = -m quick $(shell grep -rlF 'pytest.mark.quick' tests --include='test_*.py' | sort)

.PHONY: api browser docs matrix dist demo quick test test-bare test-connect test-dbt test-readme coverage coverage-core lint format bench audit clean setup

setup: $(STAMP)

$(STAMP): pyproject.toml research/pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (a minute or two the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -e research
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/fogline demo --out out

test: $(STAMP) $(BARE_STAMP) browser
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not long'
	$(MAKE) --no-print-directory --output-sync=target -j 2 test-bare test-readme test-connect

# what tests need besides Python: a browser and MariaDB, where they are missing and may be installed; elsewhere those tests
# are skipped, unless CI is set
browser:
	@sh tools/install_for_tests.sh

# the tests that matter, of every package, in less than a minute: for the moments between two edits
quick: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal $(QUICK)

$(BARE_STAMP): pyproject.toml research/pyproject.toml
	@test -x $(BARE)/bin/python || $(PYTHON) -m venv $(BARE)
	@echo "setting up $(BARE), without pyarrow"
	@$(BARE)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BARE)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli,fast,test-bare]' -e research
	@touch $(BARE_STAMP)

# the tests of sources once more, where pyarrow is not installed
test-bare: $(BARE_STAMP)
	@! $(BARE)/bin/python -c 'import pyarrow' 2>/dev/null || { echo "pyarrow is in $(BARE)"; exit 1; }
	$(BARE)/bin/python -m pytest -q -n 2 --dist worksteal -m 'not long' tests/sources tests/isolation

# dbt before 1.11: later versions fetch a binary from GitHub when they are installed
$(DBT_STAMP):
	@test -x $(DBT)/bin/python || $(PYTHON) -m venv $(DBT)
	@echo "setting up $(DBT)"
	@$(DBT)/bin/python -m pip install --quiet --disable-pip-version-check 'dbt-core<1.11' 'dbt-duckdb<1.11'
	@touch $(DBT_STAMP)

# the macro of docs/scale.md, run by dbt itself
test-dbt: $(STAMP) $(DBT_STAMP)
	FOGLINE_DBT=$(CURDIR)/$(DBT) $(BIN)/python -m pytest -q tests/sources/test_recipes.py -k dbt

$(CONNECT_STAMP): pyproject.toml research/pyproject.toml
	@test -x $(CONNECT)/bin/python || $(PYTHON) -m venv $(CONNECT)
	@echo "setting up $(CONNECT)"
	@$(CONNECT)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[arrow,cli,fast,test-bare]' -e research \
		pandas pysail 'pyspark-client>=4.0,<4.2' grpcio grpcio-status googleapis-common-protos zstandard \
		fakesnow 'snowflake-connector-python<5'
	@touch $(CONNECT_STAMP)

# tables of Spark Connect, counted by Sail, and the queries for Snowflake, by fakesnow
test-connect: $(CONNECT_STAMP)
	$(CONNECT)/bin/python -m pytest -q tests/sources/test_connect.py tests/sources/test_warehouse.py -k 'connect or fakesnow'

# the README from top to bottom, in an environment with what its own line installs and nothing else; the package itself is
# installed anew each time, as the README says: a copy, not a link to the sources
test-readme:
	@test -x $(README)/bin/python || $(PYTHON) -m venv $(README)
	@$(README)/bin/python -m pip install --quiet --disable-pip-version-check "$$($(PYTHON) tests/readme.py install README.md)"
	@rm -rf build
	cd $(README) && bin/python -I ../tests/readme.py run ../README.md

# the tests again, with the lines they miss: a third slower, so not part of `make test`
coverage: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --cov=fogline --cov-report=term:skip-covered

# every branch of what privacy rests on: mechanisms, accounting, ledger, and the code that counts records; compiled loops
# cannot be traced, so their numpy twins run as well, and tests compare the two
coverage-core: $(STAMP)
	$(BIN)/python tests/core_coverage.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Python 3.11 to 3.13 as far as they are at hand, each with the lowest and the newest dependencies; CELLS takes options
# of tools/matrix.py, for instance CELLS='--python 3.11 --versions lowest'
matrix: $(STAMP)
	$(BIN)/python tools/matrix.py $(CELLS) -- $(or $(QUICK),tests/accounting tests/mechanisms)

# sdist and wheel, built twice and compared byte by byte, in dist/; the wheel holds the documentation site
dist: $(STAMP) docs
	$(BIN)/python tools/build_twice.py

# the list of public names: docs/api.md for readers, tests/api.txt for the test that holds it
api: $(STAMP)
	$(BIN)/python tools/write_api.py

# the documentation site, in build/site: built without the network, every link and anchor checked; `fogline docs` serves it
# from the archive that is packed last
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --quiet
	$(DOCS)/bin/python tools/check_site.py build/site
	$(DOCS)/bin/python tools/pack_site.py build/site src/fogline/cli/site.zip

$(DOCS_STAMP): pyproject.toml
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@echo "setting up $(DOCS)"
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli,docs]'
	@touch $(DOCS_STAMP)

bench: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' -e research
	$(BIN)/python benchmarks/run_all.py

audit: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m long tests
	$(BIN)/python -m fogline_research.audit_campaign

clean:
	rm -rf src/fogline/cli/site.zip $(VENV) $(DOCS) $(BARE) $(CONNECT) $(DBT) $(README) .venv-matrix out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info research/src/*.egg-info research/build
