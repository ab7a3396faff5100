package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A value that grows in a loop leaves the values before it as garbage. The process stays below the limit of a run with
// them, not below a multiple.
func TestGarbageOfAGrowingValueIsWithinTheLimit(t *testing.T) {
	const limit, program = 512 << 10, 96 << 10 // KiB
	dir, exe := t.TempDir(), ownProgram(t)
	m := hostileModel(func(g hostile, x *ir.Value) *ir.Value {
		values := make([]float32, 4<<12) // enough to be quantized
		for i := range values {
			values[i] = float32(i%7 - 3)
		}
		w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4, 1 << 12}},
			Source: ir.Mem(ir.ArrayOf(values, 4, 1<<12).Data)})
		start := g.op("Expand", g.op("ReduceSum", g.op("MatMul", x, w)), g.ints(1<<20, 1))
		return g.loop(start, func(b hostile, t *ir.Value) *ir.Value {
			return b.node("Concat", []*ir.Value{t, t}, ir.IntAttr("axis", 0))
		})
	})
	if _, err := onnx.Save(t.Context(), m, filepath.Join(dir, "m.onnx"),
		onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: ir.NewEval(dir)}); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"verify m.onnx m.onnx", "quantize --method static-int8 m.onnx -o q.onnx"} {
		c := exec.CommandContext(t.Context(), exe, append([]string{"-q", "--memory-limit", "512MiB"}, strings.Fields(args)...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOMAXPROCS=4")
		text, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != exitInput ||
			!strings.Contains(string(text), "the memory limit of the run is") {
			t.Errorf("%s: exit code %d: %.300s", args, code, text)
		}
		if peak := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; peak > limit+program {
			t.Errorf("%s: a peak of %d KiB, the limit is %d KiB", args, peak, limit)
		}
	}
}
