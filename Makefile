# Sluice: the everyday commands. `make help` lists them.
#
#   JOBS=n    number of parallel compile and test jobs (default: the number of cores)
#   SETUP=:   skips the check for missing packages
#   TRAIN_ARGS='--recipe cifar10 --data cifar10:DIR'   options for make train (default: the demo)
#   BENCH_ARGS='--ranks 2 --sizes 1M:64M'   options for make bench and make bench-network
#   SLUICE_TEST_DATA=DIR   the folder of cifar10-jpeg.tar.xz, for make bench-gradient and bench-learning

JOBS ?= $(shell nproc)
SETUP ?= tools/setup
FUZZ_SECONDS ?= 30
TRAIN_ARGS ?=
BENCH_ARGS ?=
export JOBS

configure = cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }
build = $(call configure,$(1)); cmake --build --preset $(1) --parallel $(JOBS) $(2)
test = ctest --preset $(1) --parallel $(JOBS)

.PHONY: all train test check sanitize bench bench-network bench-startup bench-fast-network bench-gradient bench-data bench-learning format clean help setup

all: setup  ## builds the command: build/release/sluice
	@$(call build,release)

train: all  ## builds the command and trains the built-in demo on this machine
	@build/release/sluice train $(TRAIN_ARGS)

test: setup  ## builds the dev preset and runs all tests
	@$(call build,dev)
	@$(call test,dev)

check: setup  ## runs the gate: format, layers, file lengths, names, lint and fast tests
	tools/format --check
	tools/check-layers
	tools/check-length
	tools/check-names
	@$(call configure,clang)
	tools/lint
	@$(call build,dev)
	@$(call test,dev) --label-regex fast

sanitize: setup  ## runs all tests under the sanitizers (g++ and clang++), checks for duplicate types, fuzzes briefly
	@$(call build,odr)
	@set -e; for preset in asan-ubsan tsan clang; do \
	  $(call build,$$preset); $(call test,$$preset); \
	done
	tools/fuzz $(FUZZ_SECONDS)

bench: setup  ## compares all-reduces with Open MPI, MPICH and Gloo (tools/setup --bench installs them)
	@$(call build,bench)
	@build/bench/bench/allreduce/compare --output build/bench/allreduce.json $(BENCH_ARGS)

bench-network: setup  ## the same over emulated hosts with slow links; needs root
	@$(call build,bench,--target network_bench)
	@build/bench/bench/network/network --output build/bench/network.json $(BENCH_ARGS)
	@build/bench/bench/network/thin_tree --output build/bench/thin-tree.json

bench-fast-network: setup  ## the same at 10 and 25 Gbit/s and over unlimited links; needs root
	@$(call build,bench,--target network_bench)
	@for hosts in 2 4; do for mbit in 10000 25000 0; do \
	build/bench/bench/network/network --hosts $$hosts --mbit $$mbit --sizes 1M:256M \
	  --contenders sluice_tcp,openmpi,gloo,stream \
	  --output build/bench/network-$$hosts-hosts-$$mbit-mbit.json || exit; done; done

bench-startup: setup  ## what the start of 16 to 512 ranks on this machine costs
	@$(call build,bench,--target sluice_cli startup_rank)
	@bench/startup/startup build/bench

bench-gradient: setup  ## compares training with DistributedDataParallel and over slow links; needs root
	@$(call build,bench,--target gradient_bench)
	@status=0; \
	build/bench/bench/gradient/ddp --output build/bench/ddp.json || status=$$?; \
	build/bench/bench/gradient/step_times --hosts 2 --batch 1100 --ratio 0.45 --ways plain,lazy --steps 1 \
	  --most lazy:alone:1.15 || status=$$?; \
	build/bench/bench/gradient/step_times --hosts 2 --batch 640 --ratio 0.9 --ways plain,lazy,double --steps 1 \
	  --most lazy:bound:1.10 double:longer:1.15 || status=$$?; \
	bench/gradient/table --output build/bench/gradient.json || status=$$?; \
	exit $$status

bench-data: setup  ## compares the data pipeline with bare libjpeg-turbo
	@$(call build,bench,--target data_pipeline)
	@build/bench/bench/train/data_pipeline --output build/bench/data.json

bench-learning: setup  ## measures accuracy against plain libtorch and by global batch; an hour on two cores
	@$(call build,bench,--target sluice_cli plain_training)
	@status=0; \
	bench/train/learning curve || status=$$?; \
	bench/train/learning batches || status=$$?; \
	exit $$status

format:  ## formats all C++ sources
	tools/format

clean:  ## removes build/
	rm -rf build

help:  ## prints this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:
	@mkdir -p build
	@$(SETUP)
