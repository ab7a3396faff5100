# The commands of this repository. `make test` installs what the tests need by itself.
.PHONY: test lint generate fuzz bench bench-engine ci

FUZZTIME ?= 5s

# The tests ask .venv for a second opinion, unless another Python is named from outside.
ifndef MCOMPRESS_PYTHON
environment := .venv/requirements.txt
endif

test: $(environment)
	go vet ./...
	go test -timeout 30m ./...

lint:
	go vet ./...
	go test ./internal/lint

generate:
	go generate ./...

fuzz: $(environment)
	FUZZTIME=$(FUZZTIME) .ci/fuzz

# Measures beside the peers and writes docs/benchmarks.md; BENCH="-large" adds 27 GB.
bench: $(environment)
	go run ./internal/bench $(BENCH)

# Only the engine's sections: beside OpenBLAS and ONNX Runtime.
bench-engine: $(environment)
	go run ./internal/bench -only gemm,engine,engine-memory $(BENCH)

ci:
	.ci/run

.venv/requirements.txt: internal/conform/requirements.txt
	.ci/venv
