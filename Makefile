# The commands of this repository. `make test` installs the Python packages of the tests.
.PHONY: test test-fast environments test-exhaustive compat compat-sample compat-environments zoo zoo-models lint generate fuzz fuzz-commands fuzz-models mutants release test-release test-cluster test-avx512 bench bench-engine bench-sparse bench-train bench-distill bench-deep-compression bench-quality bench-prune bench-language bench-pack bench-fleet bench-growth ci
.DELETE_ON_ERROR:

FUZZTIME ?= 5s
DIST ?= dist

# The reference implementations are in .venv, unless MCOMPRESS_PYTHON names another Python.
ifndef MCOMPRESS_PYTHON
environment := .venv/requirements.txt
endif

# A server of MLflow is in .venv-mlflow, unless MCOMPRESS_MLFLOW_PYTHON names another Python.
ifndef MCOMPRESS_MLFLOW_PYTHON
mlflow := .venv-mlflow/requirements.txt
endif

ifndef TORCH
TORCH := .venv-torch/bin/python
torch := .venv-torch/requirements.txt
endif

# The oldest and the newest ONNX Runtime, and ONNX's reference implementation.
sample := $(patsubst %,.compat/%/requirements.txt,ort-1.17 ort-1.31 reference)

# Linking without the table of symbols takes a third less time, of one program for each package. Traces have names all the same.
go_test := go test -vet=off -ldflags=-s

# The packages with the longest tests start first, so that none of them runs alone at the end.
slow := ./cmd/mcompress ./quantize ./ir/opset ./internal/kernel ./prune ./internal/engine

# One more than processors: tests wait for servers, processes and disks for a third of their time.
packages := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

test: $(environment) $(mlflow) .s3/s3server
	go vet ./...
	$(go_test) -timeout 30m -p $(packages) $(slow) ./...

# The inner loop, less than a minute: graphs, facts about operators, operators of the engine, flags and some commands as a user runs them.
fast := ./ir ./ir/operator ./pass ./internal/cli ./internal/pack ./internal/journal ./internal/memory ./prune/internal/... \
  ./internal/engine/op ./internal/engine/elementwise ./internal/engine/reduce ./internal/engine/movement ./internal/engine/linear ./internal/dev/lint
fast_commands := (Help|Flags|Scripts)/(quantize|prune|sparse|inspect|verify|usage)$$

test-fast: $(environment)
	$(go_test) -short $(fast)
	$(go_test) -run '$(fast_commands)' ./cmd/mcompress

# All that the tests need besides Go.
environments: $(environment) $(mlflow) $(sample) .s3/s3server
	.ci/docker-registry
	.ci/browser

# The sweeps that make test samples, with all of their cases, and kernels of one element on all 2^32 float32: hours.
test-exhaustive: $(environment)
	MCOMPRESS_EXHAUSTIVE=1 go test -timeout 0 ./...
	go test -timeout 0 ./internal/kernel -exhaustive

# Every written form in every runtime, into docs/compatibility.md; COMPAT="-only web,weight-int8" selects some. It resumes an interrupted run.
compat: compat-environments
	go run ./internal/dev/compat $(COMPAT)

# The sample of make test: the oldest and the newest ONNX Runtime.
compat-sample: $(sample)
	CI=true go test -vet=off ./internal/dev/compat

compat-environments: $(patsubst internal/dev/compat/environments/%.txt,.compat/%/requirements.txt,$(wildcard internal/dev/compat/environments/*.txt))
compat-environments: .compat/web/package-lock.json

# Every command on models that the tests do not have, which are downloaded or made; ZOO="-models silero" selects some. It is resumable.
zoo: $(environment) zoo-models
	go run ./internal/dev/zoo $(ZOO)

zoo-models: .zoo/genai/requirements.txt .zoo/optimum/requirements.txt .zoo/models/wheels
	.zoo/genai/bin/python internal/dev/zoo/genai.py .zoo/models/genai
	.zoo/genai/bin/python internal/dev/zoo/dynamo.py .zoo/models/dynamo
	.zoo/optimum/bin/python internal/dev/zoo/optimum_onnx.py .zoo/models/optimum

# Linters in the versions of .ci/lint.mod, and the rules of this repository. Each linter is its own command: golangci-lint, which has all of them in
# one, takes ten times as long to compile. Only vet and deadcode read tests.
tool := go tool -modfile=.ci/lint.mod

# Those of gocritic's diagnostics that are neither experimental nor wrong about x != x and about conditions with random numbers.
diagnostics := badCall,badCond,caseOrder,codegenComment,deprecatedComment,dupArg,dupBranchBody,flagDeref,flagName,offBy1,sloppyLen

# -errorf=false: %v where the cause is not one of this program, or must not be found. infinit: of infinite and infinity.
lint:
	go vet ./...
	$(tool) staticcheck -tests=false ./...
	$(tool) revive -config .ci/revive.toml -set_exit_status ./...
	$(tool) gocritic-analysis -test=false -enable=$(diagnostics) ./...
	$(tool) go-errorlint -test=false -errorf=false $$(go list ./... | grep -v /internal/dev/)
	$(tool) misspell -error -i infinit $$(git ls-files '*.go')
	dead=$$($(tool) deadcode -test ./...) && { [ -z "$$dead" ] || { echo "$$dead"; exit 1; }; }
	go test -vet=off ./internal/dev/lint

generate:
	go generate ./...

fuzz: $(environment)
	FUZZTIME=$(FUZZTIME) FUZZCOUNT=$(FUZZCOUNT) .ci/fuzz

# Random commands on mutated models, for FUZZCOMMANDS=-time=2h; resumable, findings are in .bench/fuzz-commands.
fuzz-commands:
	go run ./internal/dev/fuzzcommands $(FUZZCOMMANDS)

# Random commands on generated models, whose results are compared with ONNX Runtime, for FUZZMODELS=-time=2h; resumable, findings are in .bench/fuzz-models.
fuzz-models: $(environment)
	go run ./internal/dev/fuzzcommands -generated -dir .bench/fuzz-models $(FUZZMODELS)

# Mutation testing of the packages that change, store, verify or measure models: hours for the sample of 300, resumable. MUTANTS=-n=20 is a smaller sample.
mutants: $(environment)
	mkdir -p .bench
	go run ./internal/dev/mutate $(MUTANTS) ./quantize/... ./prune/... ./sparse/... ./distill/... ./pass/... ./onnx/... ./internal/verify/... ./report/... \
	  ./registry/... ./internal/remote/... ./internal/journal/... ./internal/pack/... ./internal/partition/... ./internal/sign/... ./internal/evidence/... \
	  ./internal/weightcache/... ./internal/engine/spmm/... ./internal/latency/... ./internal/profile/...

# The files of a release, in dist: make release VERSION=v1.2.3. PLATFORMS="linux/amd64" selects some, DIST another folder.
release:
	.ci/release $(or $(VERSION),$(error VERSION is not set: make release VERSION=v1.2.3)) $(DIST) $(PLATFORMS)

# Makes a release for this platform twice, installs each of its packages offline and compresses a model.
test-release: $(environment)
	go -C packaging test -vet=off -count=1 -timeout 15m .

# Runs lists and plans on Kubernetes and Slurm, whose programs it builds or downloads the first time, as root: 20 minutes and 20 GB of disk.
test-cluster: .cluster/controlplane .cluster/slurm
	MCOMPRESS_CLUSTER=1 go test -vet=off -count=1 -v -timeout 2h ./internal/dev/cluster

# Runs tests of the kernels for AVX-512 and VNNI in Bochs, an emulator, which it installs the first time, as root: 10 minutes.
test-avx512: .avx512/vmlinuz
	MCOMPRESS_AVX512=1 go test -vet=off -count=1 -v -timeout 2h ./internal/dev/avx512

# With AVX2=1, a benchmark runs the AVX2 kernels of all programs on a processor with AVX-512, see internal/dev/bench/cpuid/avx2.c.
ifdef AVX2
hide_avx512 := $(CC) -O2 -Wall -shared -fPIC -o .bench/avx2.so internal/dev/bench/cpuid/avx2.c && \
  GODEBUG=cpu.avx512f=off,cpu.avx512bw=off,cpu.avx512vnni=off NM_ARCH=avx2 LD_PRELOAD=$(CURDIR)/.bench/avx2.so
endif

# The benchmark is a module of its own, which runs in the root folder.
run_bench := go -C internal/dev/bench build -o $(CURDIR)/.bench/run . && $(hide_avx512) .bench/run

# Measures mcompress and its peers and writes docs/benchmarks.md; BENCH="-large" adds 40 GB.
bench: $(environment)
	$(run_bench) $(BENCH)

# Only the sections of the engine, compared with OpenBLAS and ONNX Runtime; BENCH="-o docs/benchmarks-avx512.md" on a processor with AVX-512, here and for bench-sparse.
bench-engine: $(environment) .zoo/genai/requirements.txt
	$(run_bench) -only gemm,engine,engine-memory,engine-int4 $(BENCH)

# Sparse models in the engine, compared with ONNX Runtime and DeepSparse, for which it needs Python 3.11, and recipes that make them, with training: an hour; BENCH="-quick -runs 1" takes minutes.
bench-sparse: $(environment) .venv-deepsparse/requirements.txt
	$(run_bench) -only sparse-engine,sparse-recipe $(BENCH)

# Only the sections of training, compared with PyTorch, which takes gigabytes unless TORCH names a Python that has it.
bench-train: $(environment) $(torch)
	$(run_bench) -only train,train-memory,train-savings,train-planned,train-smallest,train-storage,train-budget -torch $(TORCH) $(BENCH)

# Accuracy after fine-tuning, distillation and QAT on real data: about an hour; BENCH=-quick takes minutes, to test the benchmark.
bench-distill: $(environment)
	$(run_bench) -only distill,lenet,finetune,qat $(BENCH)

# Deep Compression of LeNet-300-100 and LeNet-5 by fixtures/recipes/deep-compression.yaml, with their training: half an hour. BENCH=-quick takes a minute.
bench-deep-compression: $(environment)
	$(run_bench) -only deep-compression $(BENCH)

# Quantizers compared with ONNX Runtime's and NNCF's, and pruning by samples, most of an hour; BENCH=-quick omits the larger real models.
bench-quality: .venv-quality/requirements.txt
	$(run_bench) -only quality,real-quality,auto -python .venv-quality/bin/python $(BENCH)

# Pruning compared with onnxsim and Torch-Pruning, and of attention heads and layers; trainings that ended are not repeated.
bench-prune: .venv-quality/requirements.txt .zoo/genai/requirements.txt
	$(run_bench) -only prune-samples,prune-heads,prune-layers,prune-channel -python .venv-quality/bin/python $(BENCH)

# Language models in int4, compared with onnxruntime-genai's builder and ONNX Runtime's quantizer: half an hour and 16 GB; BENCH=-quick takes a tiny model.
bench-language: $(environment) .zoo/genai/requirements.txt
	$(run_bench) -only language $(BENCH)

# Packed models compared with zstd, xz and ZipNN, half an hour: needs zstd and xz; BENCH="-only pack-large" pipes a model of up to 30 GB instead.
bench-pack: .venv-quality/requirements.txt
	$(run_bench) -only pack,pack-speed -python .venv-quality/bin/python $(BENCH)

# Time and memory by bytes and by nodes, half an hour; BENCH=-large adds 30 GB, BENCH=-quick omits the largest ones. The test of the documentation draws docs/growth.svg.
bench-growth: $(environment)
	$(run_bench) -only growth $(BENCH)
	go test ./internal/dev/doctest -run GrowthIsThatOfTheBenchmarks -update

# The constants of fleets, and costs that follow: ten minutes, 12 GB.
bench-fleet: $(environment) .s3/s3server
	$(run_bench) -only fleet $(BENCH)

ci:
	.ci/run

.venv/requirements.txt: internal/dev/conform/requirements.txt
	.ci/venv

.venv-mlflow/requirements.txt: internal/dev/conform/requirements-mlflow.txt
	.ci/venv .venv-mlflow $<

# An S3 server for the tests of object storage: a minute of CPU time the first time. Without optimizations, its modules compile in two thirds of the time.
.s3/s3server: internal/dev/s3server/go.mod internal/dev/s3server/go.sum internal/dev/s3server/main.go
	go -C internal/dev/s3server build -trimpath -gcflags='github.com/...=-N -l -dwarf=false' -o $(CURDIR)/$@ .

# Kubernetes' control plane, of the version in go.mod: 14 minutes of CPU time the first time.
.cluster/controlplane: internal/dev/cluster/controlplane/go.mod internal/dev/cluster/controlplane/go.sum internal/dev/cluster/controlplane/main.go
	version=$$(go -C $(<D) list -m -f '{{.Version}}' k8s.io/kubernetes) && GOFLAGS=-trimpath go -C $(<D) build \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$version" -o $(CURDIR)/$@ .

.cluster/slurm: .ci/slurm
	.ci/slurm
	touch $@

.avx512/vmlinuz: .ci/bochs
	.ci/bochs
	touch $@

.venv-quality/requirements.txt: internal/dev/bench/requirements-quality.txt
	.ci/venv .venv-quality $<

.venv-deepsparse/requirements.txt: internal/dev/bench/requirements-deepsparse.txt
	PYTHON=python3.11 .ci/venv .venv-deepsparse $<

.venv-torch/requirements.txt: internal/dev/bench/requirements-torch.txt
	.ci/venv .venv-torch $<

.compat/%/requirements.txt: internal/dev/compat/environments/%.txt
	.ci/venv .compat/$* $<

.compat/web/package-lock.json: internal/dev/compat/environments/web/package-lock.json
	mkdir -p $(@D)
	cp $(<D)/package.json $< $(@D)
	npm ci --prefix $(@D) --no-audit --no-fund
	touch $@

# Dependencies that are not in the file are in .venv-quality.
.zoo/%/requirements.txt: internal/dev/zoo/environments/%.txt .venv-quality/requirements.txt
	.ci/venv .zoo/$* $<
	ls -d $(CURDIR)/.venv-quality/lib/python*/site-packages > $$(ls -d .zoo/$*/lib/python*/site-packages)/torch.pth

.zoo/models/wheels: internal/dev/zoo/wheels.txt
	rm -rf $@
	python3 internal/dev/zoo/wheels.py $< $@
