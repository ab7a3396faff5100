package quantize

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// converted is the model at path after v, whatever its size; empty if it cannot be, or nothing was changed.
func converted(t *testing.T, v variant, path string) string {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		return "" // Open's own tests are about those
	}
	t.Cleanup(func() { f.Close() })
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	if f.Model.Verify() != nil || !sorts(f.Model) {
		return ""
	}
	res, err := pass.Run(t.Context(), f.Model, eval, pass.Environment{Workers: 2, Precheck: true, Target: v.target(t)},
		[]pass.Options{v.step(t)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(res.Rows, func(r pass.Row) bool { return r.Status == pass.Changed }) {
		return ""
	}
	out := filepath.Join(t.TempDir(), "out.onnx")
	if _, err := onnx.Save(context.Background(), f.Model, out,
		onnx.SaveOptions{Workers: 2, Memory: 64 << 20, Eval: eval}); err != nil {
		t.Fatal(err)
	}
	return out
}

func floats32(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}
