# Everything a newcomer needs: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARCHIVED := examples/archived/shapes-symbol.json
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test lint types format test-torch test-pythons test-aarch64 test-slow soak bench pages docs pictures package ptx gpu-compiled gpu-cost golden clean

help: ## list these targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit("roiops needs Python 3.10 or later, this is %d.%d; try make PYTHON=python3.12" % v if v < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,viz,examples]'
	@touch $@

demo: $(STAMP) ## set up, run the main job, say where the picture is
	$(BIN)/python examples/demo.py
	@echo
	@echo "The same detector as a model that MXNet saved; try:"
	@echo "  $(BIN)/roiops inspect $(ARCHIVED) --shape data=1,3,128,128 --shape im_info=1,3"

test: $(STAMP) lint ## lint, then the whole default test suite
	ROIOPS_JOBS=1 $(PYTEST) -n 2 --dist loadfile

lint: $(STAMP) ## ruff, lint and format; mypy on the public names
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

types: $(STAMP) ## mypy and pyright (installs it) on calls that are right and on mistakes that they must find
	$(BIN)/python tools/make_stubs.py
	$(BIN)/mypy
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pyright
	$(BIN)/pyright --pythonpath $(BIN)/python tests/annotations/public_surface.py
	! $(BIN)/pyright --pythonpath $(BIN)/python tests/annotations/mistakes.py

format: $(STAMP) ## let ruff rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-torch: ## the tests of roiops.torch, which `make test` skips, in .peers/torch-tests (installs PyTorch there)
	$(PYTHON) -m venv .peers/torch-tests
	.peers/torch-tests/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' torch==2.9.1 torchvision==0.24.1 onnxscript==0.7.2
	.peers/torch-tests/bin/python -m pytest tests/pytorch tests/ndarray/test_torch.py

test-pythons: ## the default tests on every Python that is found, 3.10 to 3.14
	$(PYTHON) verify/pythons.py

test-aarch64: ## kernels, operators, graph and models on AArch64, emulated by qemu: hours; times mean nothing
	$(PYTHON) verify/aarch64.py

test-slow: $(STAMP) ## the long checks
	$(PYTEST) -m slow

ptx: ## compile every CUDA kernel for three GPU generations; needs no GPU (installs the compilers)
	$(PYTHON) verify/ptx_check.py

gpu-compiled: ## run what numba-cuda compiled for a GPU on this processor, with checks; long (installs it, and PyTorch)
	$(PYTHON) verify/gpu_compiled.py
	$(PYTHON) verify/gpu_torch.py

gpu-cost: ## what the CUDA kernels would cost a GPU: computed from runs on this processor, not measured
	$(PYTHON) verify/gpu_cost.py

soak: $(STAMP) ## hostile boxes, damaged files, threads, forks, Ctrl-C, memory: at most 30 minutes
	$(BIN)/python verify/soak.py

bench: $(STAMP) ## every benchmark beside its peers (installs them), and the page of results; about an hour
	$(BIN)/python benchmarks/run.py

pages: $(STAMP) ## write what follows from the code: reference pages, stubs, tables of dialects
	$(BIN)/python tools/make_reference.py
	$(BIN)/python tools/make_stubs.py
	$(BIN)/python verify/dialects.py

docs: $(STAMP) ## the static site in site/, with the reference of all operators
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python tools/make_reference.py
	$(BIN)/python tools/make_stubs.py
	$(BIN)/mkdocs build --strict --quiet

pictures: $(STAMP) ## draw the pictures of the dialects again
	$(BIN)/python tools/make_pictures.py

package: $(STAMP) ## build wheel and sdist, and use each in an empty environment
	$(BIN)/python tools/check_package.py

golden: $(STAMP) ## make the golden files again from the real peers (installs them)
	$(PYTHON) verify/peers.py mxnet torch onnx gluoncv mmcv paddle tf
	$(BIN)/python verify/golden/make.py
	$(BIN)/python verify/check_model_zoo.py --golden
	$(BIN)/python tools/make_archived_example.py

clean: ## remove the environment and build products
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .ruff_cache
