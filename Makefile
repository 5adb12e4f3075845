# iolab: `make study` shows what it is for, `make test` proves that it works.
#
# Python is assumed; everything else is installed by tools/setup/install (by apt as root or with
# sudo, otherwise it says what to install, or takes wheels, and Rust, into build/).
# A second run of either target only does what is left to do.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BUILD := build
CARGO := cargo
IOLAB := target/release/iolab
STUDY := $(BUILD)/study
# Six strategies can be told apart from plain by eight rounds, see docs/howto/study-a-program.md.
RUNS ?= 8

# What tools/setup/install has brought comes first: wrappers of MPI families that came as wheels, and Rust.
export PATH := $(CURDIR)/$(BUILD)/mpi/bin:$(CURDIR)/$(BUILD)/rust/bin:$(PATH):$(HOME)/.cargo/bin

.PHONY: help study study-jacobi test test-long test-aarch64 bench lint build setup docs packages clean

help:
	@echo 'make study         record, explain, simulate and reshape the bundled example: one HTML page'
	@echo 'make study-jacobi  the same for a parallel solver under MPI'
	@echo 'make test          everything that must hold (also what .ci/run calls)'
	@echo 'make test-long     the same with the slow tests'
	@echo 'make test-aarch64  what depends on the processor, as on an AArch64 machine (QEMU)'
	@echo 'make bench         the figures of benchmarks/'
	@echo 'make lint          formatting and clippy'
	@echo 'make docs          the documentation as a book: HTML pages with search, in build/docs/html'
	@echo 'make packages      tarball, wheel, deb, rpm and bill of materials, in build/packages'

build: setup
	$(CARGO) build --release --workspace --exclude iolab-python

setup:
	@tools/setup/install study

study: build
	@$(MAKE) --no-print-directory -s -C examples/checkpoint BUILD=$(CURDIR)/$(BUILD)/examples
	@mkdir -p $(STUDY)/output
	$(IOLAB) study --runs $(RUNS) --output $(STUDY)/output --results $(STUDY) -- \
		$(BUILD)/examples/checkpoint $(STUDY)/output
	@echo
	@echo 'The report: file://$(CURDIR)/$(STUDY)/study.html'

# Open MPI refuses to run as root unless told twice; only examples and tests tell it.
study-jacobi: export OMPI_ALLOW_RUN_AS_ROOT := 1
study-jacobi: export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
study-jacobi: build
	@tools/setup/install mpi
	@$(MAKE) --no-print-directory -s -C examples/jacobi BUILD=$(CURDIR)/$(BUILD)/examples
	@mkdir -p $(STUDY)-jacobi/output
	$(IOLAB) study --runs $(RUNS) --output $(STUDY)-jacobi/output --results $(STUDY)-jacobi -- \
		mpiexec -n 2 $(BUILD)/examples/jacobi $(STUDY)-jacobi/output
	@echo
	@echo 'The report: file://$(CURDIR)/$(STUDY)-jacobi/study.html'

test:
	@tools/setup/install test
	@tools/setup/run-tests

test-long:
	@tools/setup/install test-long
	@tools/setup/run-tests --long

test-aarch64:
	@tools/setup/test-aarch64

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

bench: build
	@tools/setup/install test
	@for script in benchmarks/record/run.sh benchmarks/write-back/measure.py benchmarks/traces.sh \
		benchmarks/bench/run.py benchmarks/prediction/measure.py; do \
		echo "== $$script"; "$$script" || exit 1; done
	@echo '== benchmarks/simulator'; $(CARGO) run --release -q -p simulator-speed -- rows
	@echo '== benchmarks/page/measure.mjs'; node benchmarks/page/measure.mjs
	@echo '== benchmarks/overlap/run.py (as root)'; benchmarks/overlap/run.py

docs: build
	@tools/docs/build

packages: setup
	@tools/packaging/build

clean:
	rm -rf $(BUILD)
	$(CARGO) clean
