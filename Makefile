# SPDX-License-Identifier: Apache-2.0
BUILD := build
CLANG_FORMAT := $(or $(shell command -v clang-format-14),clang-format)
RUN_CLANG_TIDY := $(or $(shell command -v run-clang-tidy-14),run-clang-tidy)
CXX_DIRS := $(wildcard src studies tests bench examples)
# Those that git tracks; all, where this is no clone.
CXX_FILES = $(shell git ls-files $(foreach kind,cc h,$(patsubst %,'%/*.$(kind)',$(CXX_DIRS))) 2>/dev/null | grep . || find $(CXX_DIRS) -name '*.cc' -o -name '*.h')

# The demo: peer 2 is killed in one round, and another joins in a later one.
DEMO_COMMAND ?= /usr/bin/python3 examples/python/mnist.py
DEMO_PEERS ?= 4
DEMO_KILL ?= 2@20
DEMO_JOIN ?= 30
DEMO_OUT ?= demo-out
DEMO_FLAGS ?=

# Seeds of the simulator: of each scenario, and of the storm alone.
SIM_SEEDS ?= 1..1000
SIM_NIGHTLY_SEEDS ?= 1..100000
SIM_FLAGS ?=
# Seeds whose histories are frozen: of the storm, and of each other scenario.
HISTORY_STORM ?= 1..400
HISTORY_OTHERS ?= 1..20

FUZZ_SECONDS ?= 60
TIDY ?= src/|tests/
# Tests at a time: one more than cores, for those of real processes mostly wait.
TEST_JOBS ?= $(shell expr $$(nproc) + 1)
# Interpreters of test-integrations (none: two of different versions on PATH), and options of its pytest.
PYTHONS ?=
TESTS ?= -m integrations
# Tests of real engines mostly wait, so two files of them run at a time (where pytest-xdist is installed).
# What compares speeds runs alone.
ENGINE_SPEED := tests/engines/viewers_test.py
ENGINE_TESTS ?= $$(/usr/bin/python3 -c 'import xdist; print("-n 2 --dist loadfile")' 2>/dev/null)
# How long make soak takes, and the file to watch.
MINUTES ?= 30
SOAK_OUT ?= soak.txt
# The soak has whole peers, in processes of their own, with sockets, disks and all threads.
SANITIZED_asan := base wire codec market plan swarm average sync data train host sim monitor peer bind launch measure cli fuzz conformance wan soak
# Those that have threads; train is what they work on.
SANITIZED_tsan := base average host train peer bind soak
# Libraries are not instrumented: what they leak, and how their threads meet, is left out.
SANITIZER_OPTIONS = ASAN_OPTIONS=detect_stack_use_after_return=1 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/sanitizers/lsan.supp:print_suppressions=0 \
	TSAN_OPTIONS=suppressions=$(CURDIR)/tests/sanitizers/tsan.supp UBSAN_OPTIONS=print_stacktrace=1
# A quarter of the storm's seeds: instrumented code takes ten times as long.
SANITIZED_FILTER ?= -Shard/StormScenario.*/[2-7]

.DEFAULT_GOAL := build
.PHONY: help setup configure build program python wheel test-wheels zig test-integrations test-device test-engines engine-programs engines engine-speed test-kubernetes package image release site everything demo sim sim-nightly explorer-nightly histories soak mutants test check layers style format-check fuzz sanitize asan tsan \
	tidy bench format clean prose

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 12
	@echo "SKIP_SETUP=1 leaves out the set-up, for systems without apt-get (see packages.txt)."

setup:  ## install missing packages (packages.txt) and fetch the data; quick when nothing is missing
	$(if $(SKIP_SETUP),,@tools/setup.sh)

# Ninja runs CMake again by itself when a source file or a CMake file came or changed.
configure: setup
	@test -f $(BUILD)/build.ninja || cmake --preset dev

build: configure  ## (default) set up and build the program, build/tw, and the tests
	@cmake --build $(BUILD)

program: configure  ## build the program alone, build/tw
	@cmake --build $(BUILD) --target tw

demo: python  ## train MNIST with PyTorch in four processes, kill one, let another join
	$(BUILD)/tw run --peers $(DEMO_PEERS) --kill $(DEMO_KILL) --join $(DEMO_JOIN) --out $(DEMO_OUT) --set training.exact_batches=true $(DEMO_FLAGS) -- $(DEMO_COMMAND)

python: configure  ## tw and the Python package with its library, in build/python (set PYTHONPATH to it)
	@cmake --build $(BUILD) --target tw python

# PyTorch 2, transformers, accelerate and Lightning come from pip: 6 GB for each interpreter.
test-integrations: program python  ## tradewind's wheel against PyTorch 2 and real trainers, in build/integrations; PYTHONS="python3 ..."
	@cmake --build $(BUILD) --target toy
	@TESTS='$(TESTS)' tools/test_integrations.sh $(BUILD) $(PYTHONS)

# PyTorch 2 comes from pip: 6 GB. The laws run over SEEDS=1..200.
test-device: python  ## what a GPU would show of waits and copies, on a simulated device for PyTorch 2; SEEDS=1..1000
	@SEEDS='$(SEEDS)' tools/test_device.sh $(BUILD) $(firstword $(PYTHONS))

# Real engines, each a bed of its own; what cannot run here is skipped and says why.
test-engines: engine-programs  ## tw up on real engines (Slurm, sshd in namespaces); installs packages-engines.txt
	@$(MAKE) --no-print-directory engines
	@$(MAKE) --no-print-directory engine-speed

engine-programs: program
	@cmake --build $(BUILD) --target tw-wan toy python

# These two build nothing: .ci/run starts the first one beside a build.
ENGINE_PYTEST = TRADEWIND_PROGRAM=$(CURDIR)/$(BUILD)/tw TRADEWIND_WAN=$(CURDIR)/$(BUILD)/tw-wan \
	/usr/bin/python3 -m pytest -q -rs -p no:cacheprovider --timeout=300

engines:
	$(if $(SKIP_SETUP),,@tools/setup.sh packages-engines.txt || true)
	@TW_SLACK_S=2 $(ENGINE_PYTEST) $(ENGINE_TESTS) $(filter-out $(ENGINE_SPEED),$(wildcard tests/engines/*_test.py))

engine-speed:
	@$(ENGINE_PYTEST) $(ENGINE_SPEED)

# The first time it builds Kubernetes, in ~/.cache/tradewind/kubernetes: minutes, and 3 GB while it does.
test-kubernetes: program  ## tw up on a real Kubernetes of one node, built from Debian's source; as root
	$(if $(SKIP_SETUP),,@tools/setup.sh tests/engines/kubernetes/packages.txt)
	@cmake --build $(BUILD) --target toy
	@TRADEWIND_PROGRAM=$(CURDIR)/$(BUILD)/tw tests/engines/kubernetes/run.sh $(KUBERNETES_FLAGS)

package: configure  ## a Debian package: tw, the Python package, the library, the pages; in build/package
	@cmake --build $(BUILD) --target tw tradewind completions
	@cd $(BUILD) && cpack -G DEB -B package >package.log || { cat package.log; exit 1; }
	@ls $(BUILD)/package/*.deb

image:  ## dist/tradewind-oci.tar: a container image with the tw of the wheel in dist/ (make wheel)
	$(if $(SKIP_SETUP),,@tools/setup.sh packages-image.txt)
	@docker/image.py "$(wildcard dist/tradewind-*_x86_64.whl)" dist/tradewind-oci.tar
	@/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/wheels/image_test.py

RELEASE_FLAGS ?=
release:  ## all that users get of VERSION=0.2.0, built and checked, for a person to upload; RELEASE_FLAGS=--dry-run
	@tools/release "$(VERSION)" $(RELEASE_FLAGS)

# What renders them comes from pip, into an environment of its own.
$(BUILD)/site-tools/complete: tools/site/requirements.txt
	@/usr/bin/python3 -m venv --clear $(@D) && $(@D)/bin/pip install -q --disable-pip-version-check -r $< && touch $@

site: $(BUILD)/site-tools/complete  ## the documentation as a site with search, in build/site; fails where a link leads nowhere
	@NO_MKDOCS_2_WARNING=1 $(<D)/bin/mkdocs build --strict -f tools/site/mkdocs.yml >$(<D)/log 2>&1 || { tail -n 30 $(<D)/log; exit 1; }
	@echo "site: build/site; to read it: python3 -m http.server -d build/site"

# The compiler and the libraries come from PyPI and Debian's sources once, into ~/.cache/tradewind/wheel.
TARGET ?= x86_64
wheel: setup  ## a wheel for any Linux with glibc 2.28, in dist; TARGET=aarch64: for Arm
	@tools/wheel/build.sh $(TARGET)
	@tools/wheel/pack.sh $(TARGET)

# Warnings are errors there, too.
zig: setup  ## compile everything with the compiler of the wheel, and run the tests as built by it (an hour)
	@tools/wheel/build.sh x86_64 all benches mutation_check
	@ctest --test-dir build-wheel-x86_64 -j2 --output-on-failure

test-wheels: wheel python  ## both wheels on Debian 11, 13 and sid, Python 3.8 and newer, PyTorch 1.11 and newer, and Arm; as root (an hour)
	$(if $(SKIP_SETUP),,@tools/setup.sh tests/wheels/packages.txt)
	@$(MAKE) --no-print-directory wheel TARGET=aarch64
	@tools/wheel/build.sh aarch64 codec_test
	@/usr/bin/python3 -m pytest -q -rs -p no:cacheprovider --timeout=1800 tests/wheels

sim: program  ## 1,000 seeds of each scenario in tests/scenarios (minutes)
	@failed=0; for scenario in tests/scenarios/*.yaml; do \
		$(BUILD)/tw sim $$scenario --seeds $(SIM_SEEDS) $(SIM_FLAGS) || failed=1; echo; done; exit $$failed

sim-nightly: program  ## 100,000 seeds of the storm (hours)
	@$(BUILD)/tw sim tests/scenarios/storm.yaml --seeds $(SIM_NIGHTLY_SEEDS) $(SIM_FLAGS)

explorer-nightly: configure  ## every order of events of the ballots of four peers (minutes, 8 GB)
	@cmake --build $(BUILD) --target explorer_nightly
	@$(BUILD)/tests/explorer_nightly --gtest_brief=1 --gtest_output=xml:$(BUILD)/explorer_nightly.xml

histories: configure  ## freeze the histories of the simulator's seeds anew (CONTRIBUTING.md says when)
	@cmake --build $(BUILD) --target sim_histories
	@$(BUILD)/tests/sim_histories tests/histories/frozen.txt --freeze --storm $(HISTORY_STORM) --others $(HISTORY_OTHERS)

soak: build  ## disturb real peers for MINUTES=30 and judge what they did (docs/reliability.md); watch soak.txt
	@echo "soak: $(MINUTES) minutes; follow it with: tail -f $(SOAK_OUT)"
	@TW_SOAK_SECONDS=$$((60 * $(MINUTES))) $(BUILD)/tests/soak_test --gtest_filter='Soak.*' >$(SOAK_OUT) 2>&1; code=$$?; \
		sed -n '/what was done to the peers/,$$p; /Failure/,/^soak/p' $(SOAK_OUT); exit $$code

mutants: configure  ## plant bugs in the protocol, one at a time, and see the simulator find each (minutes)
	@cmake --build $(BUILD) --target mutation_check
	@$(BUILD)/tests/mutation_check $(MUTANTS_FLAGS)

# What no test builds stops compiling unseen.
everything: configure
	@cmake --build $(BUILD) --target all benches mutation_check

test: check everything  ## check, build all there is, benchmarks too, and run all tests
	@ctest --test-dir $(BUILD) -j$(TEST_JOBS) --output-on-failure

check: setup layers style prose format-check  ## the quick checks: layers, style, prose, format
	@echo "check: layers, style, prose and format are right"

layers:
	@tools/check_test.py
	@tools/plant_bugs_test.py
	@tools/release_test.py
	@tools/c_interface_test.py
	@tools/check_layers

style:
	@tools/check_style
	@tools/check_names

prose:
	@tools/check_prose
	@docs/pictures/draw.py --check

format-check:
	@$(if $(CXX_FILES),$(CLANG_FORMAT) --dry-run -Werror $(CXX_FILES))

format:  ## format all C++ files in place
	@$(if $(CXX_FILES),$(CLANG_FORMAT) -i $(CXX_FILES))

# What a fuzzer found interesting stays in build-fuzz/corpus; an input that breaks a law, in build-fuzz/findings.
fuzz: setup  ## each fuzzer for FUZZ_SECONDS (60); needs clang
	@test -f build-fuzz/build.ninja || cmake --preset fuzz
	@cmake --build --preset fuzz
	@tools/fuzz.sh build-fuzz $(FUZZ_SECONDS)

sanitize: asan tsan  ## the tests and whole peers under ASan with UBSan, those with threads under TSan (slow)

# TSan of GCC 12 wants its addresses where a kernel that randomises more bits does not leave them.
asan tsan: setup
	@test -f build-$@/build.ninja || cmake --preset $@
	@cmake --build build-$@ --target $(patsubst %,%_test,$(SANITIZED_$@))
	@GTEST_FILTER='$(SANITIZED_FILTER)' $(SANITIZER_OPTIONS) setarch -R ctest --test-dir build-$@ -j2 --output-on-failure \
		-R '^($(subst $() ,|,$(SANITIZED_$@)))_test(_[0-9]+)?$$'

# File by file: run-clang-tidy looks for names that eight files compiled at once do not have.
tidy: setup  ## clang-tidy over all files, or over TIDY='src/base/.*' (slow)
	@cmake --preset dev -B build-tidy -DCMAKE_UNITY_BUILD=OFF >/dev/null
	@$(RUN_CLANG_TIDY) -p build-tidy -quiet -extra-arg=-Wno-unknown-warning-option \
		-extra-arg=-DASIO_HAS_CO_AWAIT=1 -extra-arg=-DASIO_HAS_STD_COROUTINE=1 \
		'$(CURDIR)/($(TIDY))'

bench: configure  ## build the benchmarks
	@cmake --build $(BUILD) --target benches
	@ls $(BUILD)/bench/bench_* 2>/dev/null | sed 's/^/run: /' || true
	@echo "bench_gloo_reduce and bench_mpi_reduce: build/tw bench reduce --vs gloo,gloo-ring,openmpi,butterfly"

clean:  ## remove the build folders and the demo's output; fetched data stays
	rm -rf build build-asan build-tsan build-fuzz build-tidy build-wheel-* $(DEMO_OUT)
