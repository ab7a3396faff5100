package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// chains grow a model by a node after x. The first one is tested with each command, the others by make test-exhaustive.
var chains = []struct {
	name string
	grow func(g hostile, x *ir.Value) *ir.Value
}{
	{"activations", func(g hostile, x *ir.Value) *ir.Value { return g.op("Relu", x) }},
	{"factors", func(g hostile, x *ir.Value) *ir.Value { return g.op("Mul", x, g.numbers(1, 1, 1, 1)) }},
	{"residual sums", func(g hostile, x *ir.Value) *ir.Value { return g.op("Add", x, g.op("Relu", x)) }},
	{"views", func(g hostile, x *ir.Value) *ir.Value { return g.op("Reshape", x, g.ints(-1, 4)) }},
	{"types", hostile.floats},
}

// chainRuns are command lines that run a model with a long chain.
var chainRuns = []string{
	"inspect m.onnx", "memory m.onnx", "memory --training m.onnx", "split m.onnx -o out/",
	"quantize --no-verify m.onnx -o out/",
	"quantize --no-verify --method equalize m.onnx -o out/", "quantize --no-verify --method smooth m.onnx -o out/",
	"quantize --no-verify --method static-int8 m.onnx -o out/",
	"quantize --no-verify --method fold-batchnorm m.onnx -o out/",
	"quantize --no-verify --method float16 --compute float16 m.onnx -o out/",
	"prune --no-verify --method channel m.onnx -o out/",
	"prune --no-verify --method layers --allow-unchanged m.onnx -o out/", "bench --runs 1 --warmup 0 --time 0s m.onnx",
}

// A chain may be as long as the graph: with 2 MiB of stack, 140 bytes for each node, no command recurses over it. Less
// than that would not hold the inference of shapes, which recurses over 4096 values at most.
func TestLongChainsNeedNoStack(t *testing.T) {
	program := ownProgram(t)
	for i, c := range chains {
		if i > 0 && !conform.Exhaustive() {
			break
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := hostileModel(func(g hostile, x *ir.Value) *ir.Value {
				w := g.constant(ir.ArrayOf(slices.Repeat([]float32{0.25, -0.25}, 8), 4, 4))
				x = g.op("MatMul", x, w)
				for range 15_000 {
					x = c.grow(g, x)
				}
				return g.op("MatMul", x, w)
			})
			if _, err := onnx.Save(t.Context(), m, filepath.Join(dir, "m.onnx"),
				onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: ir.NewEval(dir)}); err != nil {
				t.Fatal(err)
			}
			for _, args := range chainRuns {
				cmd := exec.CommandContext(t.Context(), program, slices.Concat([]string{"-q"}, strings.Fields(args))...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), fmt.Sprintf("%s=%d", stackSize, 2<<20))
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Run(); err != nil {
					t.Errorf("%s: %v: %.300s", args, err, stderr.String())
				}
				if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
