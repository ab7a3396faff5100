# The commands of this repository. `make test` installs what the tests need by itself.
.PHONY: test lint generate fuzz ci

FUZZTIME ?= 5s

# The environment that the tests ask for a second opinion; another one can be named from outside.
ifndef MCOMPRESS_PYTHON
export MCOMPRESS_PYTHON := $(CURDIR)/.venv/bin/python
environment := .venv/requirements.txt
endif

test: $(environment)
	go vet ./...
	go test ./...

lint:
	go vet ./...
	go test ./internal/lint

generate:
	go generate ./...

fuzz: $(environment)
	FUZZTIME=$(FUZZTIME) .ci/fuzz

ci:
	.ci/run

.venv/requirements.txt: internal/conform/requirements.txt
	.ci/venv
