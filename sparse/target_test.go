package sparse

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// TestFormsOfATarget leaves out forms that a runtime of the target does not run, and has auto choose among the others.
func TestFormsOfATarget(t *testing.T) {
	for _, c := range []struct {
		target, op string
		method     *pass.Method
		keep       func(int64) bool
		want       string
	}{
		{"openvino", "LSTM", deltaMethod, density(.1), "no delta4 (openvino lacks recurrent weights from nodes with CumSum)"},
		{"openvino", "LSTM", bitmaskMethod, density(.1), "no bitmask (openvino lacks"},
		{"openvino", "LSTM", autoMethod, density(.1), "coo"},
		{"openvino", "MatMul", autoMethod, density(.1), "delta"},
		{"opencv", "LSTM", autoMethod, density(.1), "delta"},
		{"opencv", "MatMul", csrMethod, only(), "no csr (opencv lacks constants without elements)"},
		{"opencv,ort", "MatMul", autoMethod, only(), "bitmask"},
		{"ort,tract", "MatMul", autoMethod, only(), "delta"},
	} {
		target, err := pass.ParseTarget(c.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, _ := applyFor(t, readBy(c.op, random("w", ir.Float, []int64{1, 64, 96}, c.keep)),
			pass.Environment{Target: target}, stepOf(t, c.method, nil))
		r := rowOf(t, rows, "w")
		if got := r.Form.Name + " " + report.Why(r); !strings.Contains(got, c.want) ||
			strings.HasPrefix(c.want, "no ") != (r.Status == pass.Skipped) {
			t.Errorf("%s of %s for %s: %s: %s, want %s", c.method.Name, c.op, c.target, r.Status, got, c.want)
		}
	}
}

// readBy is a model whose node of op has w as its second input.
func readBy(op string, w weight) *ir.Model {
	m := modelOf(21)
	in := m.Graph.NewValue("x")
	in.Type = typeOf(ir.Spec{DType: ir.Float, Shape: []int64{5, 2, 96}})
	m.Graph.Inputs = append(m.Graph.Inputs, in)
	v := m.Graph.AddConst(w.name, &ir.Tensor{Spec: w.Spec, Source: ir.Mem(w.data)})
	out := m.Graph.Insert(nil, op, []*ir.Value{in, v})
	out.Name, out.Type = "y", &ir.Type{Elem: ir.Float}
	m.Graph.AddOutput(out)
	return m
}
