package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// hostileRuns are command lines that run models. They are started in a folder with the hostile model m.onnx, its
// samples data, the recipe r.yaml and the folder out.
var hostileRuns = []string{
	"inspect m.onnx", "memory m.onnx", "memory --training m.onnx", "split m.onnx -o out/", "quantize m.onnx -o out/",
	"quantize --verify m.onnx -o out/",
	"quantize --method static-int8 m.onnx -o out/", "quantize --method weight-int4 --algo gptq m.onnx -o out/",
	"quantize --auto --min-sqnr 20 --allow-random-inputs m.onnx -o out/",
	"prune --method lowrank m.onnx -o out/", "verify m.onnx m.onnx", "bench --runs 1 --warmup 0 --time 0s m.onnx",
	"bench --profile --runs 1 m.onnx",
	"apply r.yaml m.onnx -o out/",
	"finetune --data data --steps 1 m.onnx -o out/",
	"finetune --data data --teacher m.onnx --loss mse --steps 1 m.onnx -o out/",
	"distill --data data --teacher m.onnx --student m.onnx --loss mse --steps 1 -o out/",
}

// Models that need more memory, steps or nodes than there are end each command with a documented exit code and without
// temporary files. The process has 3 GiB of address space, so that memory that is taken before it is planned ends it,
// and few threads, as their stacks take some of it. Each model runs a third of the commands, another one than the
// models next to it, or all of them by make test-exhaustive.
func TestHostileModelsInLimitedProcesses(t *testing.T) {
	program := ownProgram(t)
	for i, name := range slices.Sorted(maps.Keys(hostileModels)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := hostileModel(hostileModels[name])
			if _, err := onnx.Save(t.Context(), m, filepath.Join(dir, "m.onnx"),
				onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: ir.NewEval(dir)}); err != nil {
				t.Fatal(err)
			}
			width := m.Graph.Inputs[0].Type.Shape[1].N
			if err := errors.Join(
				os.WriteFile(filepath.Join(dir, "r.yaml"),
					[]byte("steps:\n  - method: l1\n  - method: static-int8\n"), 0o644),
				os.Mkdir(filepath.Join(dir, "data"), 0o755),
				os.WriteFile(filepath.Join(dir, "data", "x.npy"), zerosNPY("<f4", 4, 4, width), 0o644),
				os.WriteFile(filepath.Join(dir, "data", "labels.npy"), zerosNPY("<i8", 8, 4), 0o644),
			); err != nil {
				t.Fatal(err)
			}
			for _, args := range conform.Part(i, 3, hostileRuns) {
				runLimited(t, program, dir, args)
			}
		})
	}
}

// ownProgram returns a copy of the test binary that runs as the program.
func ownProgram(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	// no link: bench starts its own program again, and the name of a test is that of all tests
	program := filepath.Join(t.TempDir(), "mcompress")
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// zerosNPY is a .npy file of zeros whose elements have the given size.
func zerosNPY(dtype string, size int64, shape ...int64) []byte {
	text := strings.Trim(fmt.Sprint(shape), "[]")
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }", dtype,
		strings.ReplaceAll(text, " ", ", "))
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	for _, n := range shape {
		size *= n
	}
	return slices.Concat([]byte("\x93NUMPY\x01\x00\x76\x00"), []byte(header), make([]byte, size))
}

// runLimited runs a command line with limited memory and checks how it ends.
func runLimited(t *testing.T, program, dir, args string) {
	out := filepath.Join(dir, "out")
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	words := append([]string{"-c", `ulimit -v 3145728 && exec "$@"`, "sh", program, "-q", "--max-steps", "20000"},
		strings.Fields(args)...)
	cmd := exec.CommandContext(ctx, "sh", words...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOMAXPROCS=4")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run()
	code, text := cmd.ProcessState.ExitCode(), stderr.String()
	switch {
	case ctx.Err() != nil:
		t.Errorf("%s: no end", args)
	case code != exitDone && code != exitGate && code != exitInput:
		t.Errorf("%s: exit code %d: %.200s", args, code, text)
	case code == exitInput && strings.Count(text, "\n") != 1:
		t.Errorf("%s: not one line: %.200s", args, text)
	}
	for _, crash := range []string{"fatal error", "panic:", "internal error"} {
		if strings.Contains(text, crash) {
			t.Errorf("%s: %s", args, crash)
		}
	}
	left, err := os.ReadDir(out)
	if err != nil || code == exitInput && len(left) > 0 ||
		slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".part") }) {
		t.Errorf("%s: exit code %d, left %v %v", args, code, left, err)
	}
}
