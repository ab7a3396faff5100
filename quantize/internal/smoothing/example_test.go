package smoothing_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/smoothing"
	"github.com/mcompress/mcompress/report"
)

// smooth is the option struct of a method that only smooths.
type smooth struct{ pass.Selection }

func (smooth) Method() *pass.Method { return &pass.Method{Name: "smooth"} }

func (smooth) Run(ctx context.Context, s *pass.Step) error {
	return smoothing.Smooth(ctx, s, &calibrate.Data{}, smoothing.Options{Alpha: 0.5})
}

// The channel scales of a product's input are folded into the normalization before it.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	constant := func(name string, shape []int64, x ...float32) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: shape}, Source: ir.Floats(x...)})
	}
	x := g.NewValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 3}, {N: 2}}}
	g.Inputs = append(g.Inputs, x)
	normal := g.Insert(nil, "LayerNormalization", []*ir.Value{x, constant("gain", []int64{2}, 1, 100)})
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{normal, constant("w", []int64{2, 2}, 1, 2, 3, 4)}))

	eval := ir.NewEval("")
	defer eval.Close()
	res, err := pass.Run(context.Background(), m, eval, pass.Environment{Workers: 1}, []pass.Options{smooth{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range res.Rows {
		if r.Status == pass.Changed {
			fmt.Println(r.Tensor, "-", report.Why(r))
		}
	}
	// Output:
	// gain - channels scaled by SmoothQuant
	// w - channels scaled by SmoothQuant: alpha 0.5, folded into the producer
}
