package job_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/modelgen"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// Sparse constants that are written back as they came have the size of their values and indices in the plan, too.
func TestPlannedSizesOfSparseConstants(t *testing.T) {
	weight := func(name string, field modelgen.Field) *modelgen.Tensor {
		w := &modelgen.Tensor{Name: name, Type: ir.Float, Shape: []int64{8, 8}, Field: field}
		for i := range 64 {
			w.Data = binary.LittleEndian.AppendUint32(w.Data, math.Float32bits(float32(i%5/4)))
		}
		return w
	}
	square := []ir.Dim{{N: 1}, {N: 8}}
	m := &modelgen.Model{IR: 8, Opset: 13, Graph: &modelgen.Graph{
		Name:      "sparse",
		Inputs:    []modelgen.Value{{Name: "x", Type: ir.Float, Shape: square}},
		Outputs:   []modelgen.Value{{Name: "y", Type: ir.Float, Shape: square}},
		Constants: []*modelgen.Tensor{weight("initializer", modelgen.Sparse), weight("dense", modelgen.Raw)},
		Nodes: []*modelgen.Node{
			{Name: "c", Op: "Constant", Out: []string{"constant"},
				Attrs: []modelgen.Attr{{Name: "sparse_value", Value: weight("", modelgen.SparseN)}}},
			{Name: "a", Op: "MatMul", In: []string{"x", "initializer"}, Out: []string{"ax"}},
			{Name: "b", Op: "MatMul", In: []string{"ax", "constant"}, Out: []string{"bax"}},
			{Name: "d", Op: "MatMul", In: []string{"bax", "dense"}, Out: []string{"y"}},
		},
	}}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	o := options(path, &prune.L1{Selection: pass.Selection{Only: pass.Globs{"dense"}}})
	o.Output = filepath.Join(t.TempDir(), "out.onnx")
	written := run(t, o).Report.Totals
	o.DryRun = true
	if planned := run(t, o).Report.Totals; planned.TensorBytes != written.TensorBytes ||
		planned.FileBytes != written.FileBytes {
		t.Errorf("planned %+v, written %+v", planned, written)
	}
}
