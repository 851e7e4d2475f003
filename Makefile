# SPDX-License-Identifier: Apache-2.0
# The two commands a newcomer needs are `make demo` and `make test`; both install what is missing, build, and run.
PREFIX ?= /usr/local
BUILD := build/release
JOBS ?= $(shell nproc)

.PHONY: help build demo test test-long coverage peers install clean docs
help:
	@echo "make demo       install what is missing, build, train PathNet on Fashion-MNIST (at most five minutes)"
	@echo "make test       install what is missing, build, run the tests (minutes)"
	@echo "make test-long  and sanitizers, fault injection, fuzzing, exhaustive sweeps"
	@echo "make coverage   the tests once more, and which lines they run (half an hour)"
	@echo "make peers      install what benchmarks are compared with: libraries, PyTorch in build/peers"
	@echo "make build      $(BUILD)/graphi"
	@echo "make install    PREFIX=$(PREFIX)"
	@echo "make docs       regenerate docs/operations.md and include/graphi/ops.h from the table of operations"

build:
	@tools/setup.sh build
	@cmake --preset release -DGRAPHI_WERROR=$(if $(CI),ON,OFF) >build.log 2>&1 || { cat build.log; exit 1; }; rm -f build.log
	@cmake --build $(BUILD) -j$(JOBS)

demo:
	@tools/setup.sh demo
	@$(MAKE) --no-print-directory build
	@$(BUILD)/graphi demo

test:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory build
	@ctest --test-dir $(BUILD) --output-on-failure -LE long -j$(JOBS)

test-long: test
	@tools/setup.sh long
	@tools/test_long.sh

# Tests that compare times may fail in this build, which is slow; what ran is counted all the same.
coverage:
	@tools/setup.sh test
	@cmake --preset coverage >/dev/null
	@cmake --build build/coverage -j$(JOBS)
	@tools/coverage.py --reset
	@-ctest --test-dir build/coverage -j$(JOBS) -LE long -E test_install
	@tools/coverage.py --files

# TensorFlow, JAX and scikit-learn: made by the experiments that ask for them. Configuring again finds the libraries.
peers:
	@tools/setup.sh bench
	@$(MAKE) --no-print-directory build
	@[ -x build/peers/pytorch/bin/python ] || sh bench/frameworks/setup.sh pytorch build/peers

# A program finds a new library once ldconfig has seen it, where its folder is one of the system's.
install: build
	@cmake --install $(BUILD) --prefix "$(PREFIX)"
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig || true
	@PATH="$$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q "=> $(PREFIX)/lib.*/libgraphi\.so" || \
		echo "programs find libgraphi.so after ldconfig, or by LD_LIBRARY_PATH where $(PREFIX) is no folder of the system's"

docs: build
	@$(BUILD)/generate_ops header > include/graphi/ops.h
	@$(BUILD)/generate_ops docs > docs/operations.md

clean:
	@rm -rf build out
