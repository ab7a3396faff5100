package pass_test

import (
	"context"
	"encoding/binary"
	"flag"
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// floats is a tensor of the given values.
func floats(shape []int64, vs ...float32) *ir.Tensor {
	var b []byte
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: shape}, Source: ir.Mem(b)}
}

func ints(vs ...int64) *ir.Tensor {
	var b []byte
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(vs))}}, Source: ir.Mem(b)}
}

// product is a model of one MatMul per weight, in a row.
func product(weights ...*ir.Tensor) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	g.Name = "product"
	x := g.NewValue("x")
	g.Inputs = append(g.Inputs, x)
	for _, w := range weights {
		x = g.Insert(nil, "MatMul", []*ir.Value{x, g.AddConst("w", w)})
	}
	g.AddOutput(x)
	return m
}

// run runs steps over m.
func run(t *testing.T, m *ir.Model, env pass.Environment, steps ...pass.Options) (*pass.Result, error) {
	t.Helper()
	return pass.Run(t.Context(), m, newEval(t), env, steps)
}

func newEval(t *testing.T) *ir.Eval {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// custom is the option struct of a method that runs a function.
type custom struct {
	pass.Selection
	method *pass.Method
	run    func(context.Context, *pass.Step) error
}

func (o custom) Method() *pass.Method                        { return o.method }
func (o custom) Run(ctx context.Context, s *pass.Step) error { return o.run(ctx, s) }

// step is a step of a method that runs f.
func step(t *testing.T, name string, stage pass.Stage, f func(context.Context, *pass.Step) error,
	flags ...string) pass.Options {
	t.Helper()
	m := &pass.Method{Name: name, Stage: stage}
	m.New = func() pass.Options { return &custom{method: m, run: f} }
	s, err := pass.NewStep(m, func(fs *flag.FlagSet) error { return fs.Parse(flags) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}
