package prune

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A bench holds one model in memory and runs methods over it.
type bench struct {
	tb   testing.TB
	step *pass.Step
	g    *ir.Graph
}

func newBench(tb testing.TB) *bench {
	m := ir.NewModel()
	m.IRVersion = 8
	m.Opsets = []ir.Opset{{Version: 17}}
	eval := ir.NewEval(tb.TempDir())
	tb.Cleanup(func() {
		if err := eval.Close(); err != nil {
			tb.Error(err)
		}
	})
	s := &pass.Step{Model: m, Eval: eval, Env: pass.Environment{Workers: 2}}
	return &bench{tb, s, m.Graph}
}

// weight adds a constant.
func (b *bench) weight(name string, dt ir.DType, shape []int64, values ...float64) *ir.Value {
	spec := ir.Spec{Name: name, DType: dt, Shape: shape}
	return b.g.AddConst(name, &ir.Tensor{Spec: spec, Source: ir.Mem(encode(dt, values))})
}

// node adds an operator; a nil input is an activation.
func (b *bench) node(op string, inputs []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	for i, v := range inputs {
		if v == nil {
			inputs[i] = b.g.NewValue("x")
			b.g.Inputs = append(b.g.Inputs, inputs[i])
		}
	}
	return b.g.Insert(nil, op, inputs, attrs...)
}

// run runs a method with options given as name, value, ....
func (b *bench) run(m *pass.Method, options ...string) []pass.Row {
	b.tb.Helper()
	rows, err := b.try(m, options...)
	if err != nil {
		b.tb.Fatal(err)
	}
	return rows
}

func (b *bench) try(m *pass.Method, options ...string) ([]pass.Row, error) {
	step, err := pass.NewStep(m, func(fs *flag.FlagSet) error {
		for i := 0; i < len(options); i += 2 {
			if err := fs.Set(options[i], options[i+1]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	res, err := pass.Run(context.Background(), b.step.Model, b.step.Eval, b.step.Env, []pass.Options{step})
	if err != nil {
		return nil, err
	}
	return res.Rows, nil
}

// bytes is v's payload.
func (b *bench) bytes(v *ir.Value) []byte {
	b.tb.Helper()
	p, err := b.step.Eval.ReadAll(context.Background(), v.Const)
	if err != nil {
		b.tb.Fatal(err)
	}
	return p
}

func (b *bench) values(v *ir.Value) []float64 { return decode(v.Const.DType, b.bytes(v)) }

// rowOf is the one row of the tensor of that name.
func rowOf(t testing.TB, rows []pass.Row, name string) pass.Row {
	t.Helper()
	var found []pass.Row
	for _, r := range rows {
		if r.Tensor == name {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d rows of %s", len(found), name)
	}
	return found[0]
}

// encode writes values as elements of type dt, rounding as that type does.
func encode(dt ir.DType, values []float64) []byte {
	var b []byte
	for _, v := range values {
		switch dt {
		case ir.Double:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case ir.Float16:
			b = binary.LittleEndian.AppendUint16(b, float16.Fromfloat32(float32(v)).Bits())
		case ir.BFloat16:
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(float32(v))>>16))
		case ir.Float:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case ir.Int8:
			b = append(b, byte(int8(v)))
		case ir.Int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
	}
	return b
}

func decode(dt ir.DType, b []byte) []float64 {
	var vs []float64
	for size := int(dt.Bits() / 8); len(b) > 0; b = b[size:] {
		switch dt {
		case ir.Double:
			vs = append(vs, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		case ir.Float16:
			vs = append(vs, float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()))
		case ir.BFloat16:
			vs = append(vs, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b))<<16)))
		default:
			vs = append(vs, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	}
	return vs
}

// transformer is a model of so many layers of one attention head and a feed-forward network of 16 neurons. A name for
// every layer is a format.
func (b *bench) transformer(input string, layers int) {
	x := b.g.AddValue(input)
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}, {N: 5}, {N: 8}}}
	b.g.Inputs = append(b.g.Inputs, x)
	matrix := func(v *ir.Value, layer int, name string, rows, columns int64) *ir.Value {
		values := make([]float64, rows*columns)
		for i := range values {
			values[i] = float64(i%7) + 1
		}
		return b.node("MatMul", []*ir.Value{v, b.weight(fmt.Sprintf("layer%d.%s", layer, name), ir.Float,
			[]int64{rows, columns}, values...)})
	}
	x = matrix(x, layers, "in", 8, 8)
	for i := range layers {
		q, k, v := matrix(x, i, "q", 8, 8), matrix(x, i, "k", 8, 8), matrix(x, i, "v", 8, 8)
		scores := b.node("MatMul", []*ir.Value{q, b.node("Transpose", []*ir.Value{k}, ir.IntsAttr("perm", 0, 2, 1))})
		a := b.node("MatMul", []*ir.Value{b.node("Softmax", []*ir.Value{scores}, ir.IntAttr("axis", -1)), v})
		x = b.node("Add", []*ir.Value{x, matrix(a, i, "o", 8, 8)})
		x = b.node("Add", []*ir.Value{x, matrix(b.node("Relu", []*ir.Value{matrix(x, i, "up", 8, 16)}), i, "down", 16, 8)})
	}
	b.g.AddOutput(x)
}
