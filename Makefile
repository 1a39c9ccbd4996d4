# `make demo` solves an instance, `make test` runs all tests, `make test-fast` those for everyday work. All of them install
# into .venv, and nowhere else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOLVERS := $(VENV)/.solvers
BASE := $(VENV)/.base
NATIVE := $(shell find native tests/native -name '*.hpp' -o -name '*.cpp' -o -name '*.cu')
# An editable install knows the files of the package by name: it is made again if the list changes.
FILES := build/files.txt
$(shell mkdir -p build; find src -type f -not -name '*.py[co]' | sort > build/files.new; \
	cmp -s build/files.new $(FILES) || mv build/files.new $(FILES))
DEMO := X-n106-k14
# Two workers halve the time. With worksteal, the tests of a file mostly stay on one worker and share its fixtures.
# Bytecode is kept, whatever the environment says: without it, every run rewrites the assertions of all tests.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: demo test test-fast fuzz lint format docs wheel-check build clean

demo: $(BASE)
	@mkdir -p out
	$(BIN)/nds solve examples/data/$(DEMO).vrp --time 10 --seed 1 \
		--out out/$(DEMO).sol --json out/$(DEMO).json --plot out/$(DEMO).png
	$(BIN)/python tools/draw_removals.py examples/data/$(DEMO).vrp out/$(DEMO).sol out/$(DEMO)-policy.png

test: $(STAMP) $(SOLVERS)
	$(PYTEST)

test-fast: $(STAMP)
	$(PYTEST) -m 'not emulator and not slow and not gpu'

# Thousands of damaged files and command lines, and of random problems; `make test` runs a few hundred.
FUZZ_SEED ?= 1
fuzz: $(STAMP)
	$(BIN)/python tests/fuzz/run.py --count 5000 --seed $(FUZZ_SEED)
	$(BIN)/python tests/fuzz/solve_random.py --count 10000 --seed $(FUZZ_SEED)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)

# The documentation site. A broken link, or a page that is not in the navigation, fails.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -q

# Builds the wheel the way pip does for anyone else, then solves with it in an empty environment, without any extra.
wheel-check: $(STAMP)
	rm -rf dist $(VENV)-wheel
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip wheel -q --no-deps -w dist \
		--config-settings=build-dir=build/wheel .
	$(PYTHON) -m venv $(VENV)-wheel
	CC=/bin/false CXX=/bin/false $(VENV)-wheel/bin/pip install -q -c constraints.txt --only-binary :all: dist/*.whl
	$(VENV)-wheel/bin/python -I .ci/check_wheel.py dist/*.whl examples/data/$(DEMO).vrp

# The package is installed editable: Python is used from src/ as it stands, the native core is
# compiled again by the next `make` after a change under native/, or of the list of files.
build: $(STAMP)

SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(NATIVE) $(FILES)
INSTALL = $(BIN)/pip install -q -c constraints.txt --no-build-isolation
define PREPARE
@$(PYTHON) -c 'import sys; sys.exit("ndsvrp needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
$(BIN)/pip install -q -c constraints.txt scikit-build-core nanobind cmake ninja
endef

$(STAMP): $(SOURCES)
	$(PREPARE)
	$(INSTALL) --config-settings=cmake.define.NDS_TEAMS=ON -e '.[policy,dev,bench,serve,docs]'
	@touch $(BASE) $@

# Without what only tests need, such as the core with teams: enough for the demo, in less time.
$(BASE): $(SOURCES)
	$(PREPARE)
	$(INSTALL) -e '.[policy]'
	@touch $@

# Those of the extra bench-all, and ray. Where they have no wheel, their tests are skipped.
$(SOLVERS): $(STAMP)
	-$(BIN)/pip install -q -c constraints.txt --only-binary :all: ortools pyvroom
	-$(BIN)/pip install -q -c constraints.txt --only-binary :all: ray
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-wheel build dist out
