# The two commands of the README are `make run` and `make test`. `make help` lists all.
BUILD := build
PRESET := release

PACKAGES := g++ cmake ninja-build ccache \
  libcli11-dev libfmt-dev nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev \
  libtorch-dev libgloo-dev libopenblas0-openmp libpng-dev zlib1g-dev dataset-fashion-mnist \
  python3 python3-dev python3-numpy python3-pytest python3-torch pybind11-dev
# Node.js from elsewhere is as good as Debian's.
PACKAGES += $(if $(shell command -v npm),,nodejs npm)
TEST_PACKAGES := chromium
LINT_PACKAGES := clang-format clang-tidy
BENCH_PACKAGES := python3-sklearn
STUDY_PACKAGES := python3-matplotlib

# Arguments for `make bench`, e.g. make bench BENCH="--max-samples 1000000"
BENCH :=

.PHONY: help setup build run test test-sanitizers data study bench format lint clean

help:
	@echo "make run    build everything and run the main job"
	@echo "make test   build everything and run every test"
	@echo "make build  build only; the program is $(BUILD)/bin/tamis"
	@echo "make data   fetch CIFAR-10 and MNIST into data/"
	@echo "make study  the comparisons behind the tables (up to 2 hours, resumable)"
	@echo "make bench  measure speed against floors and peers (BENCH=\"--help\" for options)"
	@echo "make test-sanitizers, make format, make lint, make clean"

setup:
	@scripts/setup.sh $(PACKAGES)

build: setup
	@cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),>/dev/null,)
	@cmake --build --preset $(PRESET)

run: build
	$(BUILD)/bin/tamis compare --preset quick --limit 20000 --seeds 0 1 --out runs/quick
	$(BUILD)/bin/tamis report runs/quick --out runs/quick/report.html

test: build
	@scripts/setup.sh $(TEST_PACKAGES)
	ctest --preset $(PRESET)

# The core and the program under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.
test-sanitizers: setup
	@for preset in asan-ubsan tsan; do \
	  cmake --preset $$preset >/dev/null && cmake --build --preset $$preset && \
	  ctest --preset $$preset || exit 1; \
	done

data:
	scripts/fetch_data.sh

study: build data
	@scripts/setup.sh $(STUDY_PACKAGES)
	scripts/study.sh $(BUILD)/bin/tamis runs/study
	scripts/render_study.py --collect runs/study --plots

bench: build
	@scripts/setup.sh $(BENCH_PACKAGES)
	benchmarks/run.py $(BENCH)

SOURCES := $(shell git ls-files '*.cpp' '*.h')

format:
	@scripts/setup.sh $(LINT_PACKAGES)
	clang-format -i $(SOURCES)

lint: build
	@scripts/setup.sh $(LINT_PACKAGES)
	clang-format --dry-run --Werror $(SOURCES)
	scripts/tidy.sh $(BUILD)

clean:
	rm -rf $(BUILD)
