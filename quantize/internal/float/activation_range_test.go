package float

import (
	"context"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// outOfRange computes in float16, as if calibration had found the activation of that name out of float16's range.
type outOfRange struct {
	pass.Selection
	name string
}

func (outOfRange) Method() *pass.Method { return &pass.Method{Name: "float16", Stage: pass.Quantize} }

func (o outOfRange) Run(ctx context.Context, s *pass.Step) error {
	x := newConversion(&Converter{HalfType: &Binary16, Compute: true}, s)
	if err := x.findFloatConstants(ctx); err != nil {
		return err
	}
	x.activations = &activationRange{t: &Binary16, maxBits: map[*ir.Value]uint32{}}
	for v := range s.Model.Values() {
		if v.Name == o.name {
			x.activations.maxBits[v] = spec.InfBits
		}
	}
	return x.rewrite(ctx)
}

// An activation out of range, also an output of a subgraph or one that a loop carries, stays float32, and the model is
// valid.
func TestActivationsOutOfRangeAroundSubgraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("many models: left to runs without -short")
	}
	w := conform.Start(t)
	for _, name := range []string{"subgraph_if", "subgraph_if_outer", "subgraph_loop_outer", "subgraph_scan_outer",
		"subgraph_nested", "function"} {
		path := "../../../fixtures/" + name + ".onnx"
		for v := range quanttest.Open(t, path).Graph.Nodes() {
			y := v.Outputs[0].Name
			t.Run(name+" "+y, func(t *testing.T) {
				m, e := quanttest.Open(t, path), ir.NewEval(t.TempDir())
				defer e.Close()
				res, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 2, Precheck: true},
					[]pass.Options{outOfRange{name: y}})
				if err != nil {
					t.Fatal(err)
				}
				if !changed(res.Rows) {
					return
				}
				out := quanttest.Save(t, m, e)
				if err := w.Check(out, true); err != nil {
					t.Error(err)
				}
				if _, err := w.Run(out, conform.Options{}); err != nil {
					t.Error(err)
				}
				for v := range m.Values() {
					if v.Name == y && v.Type != nil && v.Type.Elem != ir.Float {
						t.Errorf("%s is %s", y, v.Type.Elem)
					}
				}
			})
		}
	}
}

func changed(rows []pass.Row) bool {
	for _, r := range rows {
		if r.Status == pass.Changed {
			return true
		}
	}
	return false
}

// Branches of testdata/outer_constant.onnx, which a fuzzer made of fixtures/subgraph_if_outer.onnx, return a constant
// of the main graph: it is read through a Cast where the branch returns float32.
func TestConstantThatABranchReturns(t *testing.T) {
	m, e := quanttest.Open(t, "testdata/outer_constant.onnx"), ir.NewEval(t.TempDir())
	defer e.Close()
	if _, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 1}, []pass.Options{outOfRange{}}); err != nil {
		t.Fatal(err)
	}
	for g := range m.Graphs() {
		for _, v := range g.Outputs {
			if p := v.Producer(); g.Outer != nil && p != nil && p.Op.Is("Cast") && p.Input(0).Const != nil {
				return
			}
		}
	}
	t.Error("no branch returns a Cast of a constant")
}
