# SPDX-License-Identifier: Apache-2.0
# The short way in: each target installs what it needs (tools/setup), builds and runs.
.DEFAULT_GOAL := probe
.PHONY: setup build probe test bench format check clean

JOBS ?= $(shell nproc)

setup:
	@tools/setup

build: setup
	@cmake --preset release >build-release.log 2>&1 || { cat build-release.log; exit 1; }
	@rm -f build-release.log
	@cmake --build build/release -j $(JOBS)

# The verdict table: every implementation that this CPU can run, on the default problems and on real quantized weights.
probe: build
	@tools/probe_demo build/release/nibble

test: build
	@tools/run_tests build/release

bench: build
	@tools/run_benchmarks build/release

format:
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

# What CI checks besides the tests: formatting, include directions, sizes, headers that compile alone.
check:
	@tools/check_format
	@tools/check_layers
	@tools/check_sizes
	@tools/check_headers

clean:
	rm -rf build
