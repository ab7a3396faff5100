package report

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// floats is a payload.
func floats(xs ...float32) ir.Mem {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func weight(name string, shape []int64, xs ...float32) *ir.Tensor {
	return &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: shape}, Source: floats(xs...)}
}

// network is a MatMul for each of the given weights, in a row, and a bias in the end.
func network(ws ...*ir.Tensor) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	g.Name = "network"
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: ws[0].Shape[0]}}}
	g.Inputs = append(g.Inputs, x)
	for _, w := range ws {
		x = g.Insert(nil, "MatMul", []*ir.Value{x, g.AddConst(w.Name, w)})
		x.Producer().Name = "to " + w.Name
	}
	x = g.Insert(nil, "Add", []*ir.Value{x, g.AddConst("bias", weight("", []int64{2}, 0.5, 0))})
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 2}}}
	g.AddOutput(x)
	return m
}

// matrixMethod is the option struct of a method that changes every selected weight of rank 2 that has a consumer.
type matrixMethod struct {
	pass.Selection
	method *pass.Method
	change func(context.Context, *pass.Step, *ir.Value) pass.Row
}

func (o matrixMethod) Method() *pass.Method { return o.method }

func (o matrixMethod) Run(ctx context.Context, s *pass.Step) error {
	for _, v := range slices.Clone(s.Model.Graph.Consts()) {
		before, consumers := v.Const, pass.Consumers(v)
		switch {
		case s.Select.Excludes(v, consumers):
			s.Ledger.Skip(v, consumers, s.Select.Reason(v, consumers))
		case len(before.Shape) != 2 || len(consumers) == 0:
			s.Ledger.Skip(v, consumers, pass.Reason{Code: pass.Shape, Detail: "not a matrix"})
		default:
			s.Ledger.Changed(v, before, consumers, o.change(ctx, s, v))
		}
	}
	return nil
}

func step(name string, stage pass.Stage, change func(context.Context, *pass.Step, *ir.Value) pass.Row) *pass.Method {
	m := &pass.Method{Name: name, Stage: stage}
	m.New = func() pass.Options { return &matrixMethod{method: m, change: change} }
	return m
}

// halving stores the first half of a weight as zeros.
var halving = step("halving", pass.Prune, func(_ context.Context, _ *pass.Step, v *ir.Value) pass.Row {
	spec := v.Const.Spec
	t := perElement("halving", v.Const, spec, func(i int64, x float32) []byte {
		if i < spec.Elems()/2 {
			x = 0
		}
		return floats(x)
	})
	v.SetConst(t)
	return pass.Row{Form: pass.InPlace, After: []pass.Part{{Role: pass.Payload, Value: v, Tensor: t}},
		Restore: func(ts []*ir.Tensor) *ir.Tensor { return ts[0] }}
})

// damping multiplies a weight by a quarter.
var damping = step("damping", pass.Prune, func(_ context.Context, _ *pass.Step, v *ir.Value) pass.Row {
	t := perElement("damping", v.Const, v.Const.Spec, func(_ int64, x float32) []byte { return floats(x / 4) })
	v.SetConst(t)
	return pass.Row{Form: pass.InPlace, After: []pass.Part{{Role: pass.Payload, Value: v, Tensor: t}},
		Restore: func(ts []*ir.Tensor) *ir.Tensor { return ts[0] }}
})

// listing stores the second element alone, as a Constant node's sparse value.
var listing = step("listing", pass.Sparsify, func(_ context.Context, _ *pass.Step, v *ir.Value) pass.Row {
	g, before := v.Graph(), v.Const
	values := perElement("listing", before, ir.Spec{DType: ir.Float, Shape: []int64{1}}, func(i int64, x float32) []byte {
		if i != 1 {
			return nil
		}
		return floats(x)
	})
	indices := &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{1}},
		Source: ir.Mem(binary.LittleEndian.AppendUint64(nil, 1))}
	s := &ir.Sparse{Values: values, Indices: indices, Shape: before.Shape}
	v.ReplaceUses(g.Insert(pass.Consumers(v)[0], "Constant", nil,
		&ir.Attr{Name: "sparse_value", Type: ir.AttrSparse, Sparse: s}))
	v.Drop()
	return pass.Row{
		Form:  pass.COO,
		After: []pass.Part{{Role: pass.Payload, Tensor: values}, {Role: pass.Indices, Tensor: indices}},
		Restore: func(ts []*ir.Tensor) *ir.Tensor {
			return onnx.Dense(&ir.Sparse{Values: ts[0], Indices: ts[1], Shape: before.Shape}).Derive()[0]
		},
	}
})

// rounding stores a weight as whole numbers of int8, cast back and multiplied by one.
var rounding = step("rounding", pass.Quantize, func(_ context.Context, s *pass.Step, v *ir.Value) pass.Row {
	g, before := v.Graph(), v.Const
	t := perElement("rounding", before, ir.Spec{DType: ir.Int8, Shape: before.Shape}, func(_ int64, x float32) []byte {
		return []byte{byte(int8(math.RoundToEven(float64(x))))}
	})
	codes := g.AddConst(v.Name+"_q", t)
	one := s.Const(g, ir.Float, []int64{}, floats(1))
	consumers := pass.Consumers(v)
	f := g.Insert(consumers[0], "Cast", []*ir.Value{codes}, ir.IntAttr("to", int64(ir.Float)))
	f = g.Insert(consumers[0], "Mul", []*ir.Value{f, one})
	v.ReplaceUses(f)
	v.Drop()
	return pass.Row{
		Form:  pass.CastMul,
		After: []pass.Part{{Role: pass.Payload, Value: codes, Tensor: t}, {Role: pass.Scales, Value: one, Tensor: one.Const}},
		Restore: func(ts []*ir.Tensor) *ir.Tensor {
			return widened(ts[0], before.Spec)
		},
	}
})

// packing stores quantized values as a column and a mask of as many bytes.
var packing = step("packing", pass.Sparsify, func(_ context.Context, _ *pass.Step, v *ir.Value) pass.Row {
	g, before := v.Graph(), v.Const
	n := []int64{before.Elems()}
	values := reshaped(before, ir.Spec{DType: before.DType, Shape: n})
	column := g.AddConst("column", values)
	mask := g.AddConst("mask", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: n}, Source: make(ir.Mem, n[0])})
	shape := g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{2}},
		Source: ir.Mem(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(before.Shape[0])),
			uint64(before.Shape[1])))})
	consumers := pass.Consumers(v)
	v.ReplaceUses(g.Insert(consumers[0], "Reshape", []*ir.Value{column, shape}))
	v.Drop()
	return pass.Row{
		Form: pass.Bitmask,
		After: []pass.Part{{Role: pass.Payload, Value: column, Tensor: values},
			{Role: pass.Indices, Value: mask, Tensor: mask.Const}},
		Restore: func(ts []*ir.Tensor) *ir.Tensor { return reshaped(ts[0], before.Spec) },
	}
})

// perElement is a recipe that makes each element from the float at the same place.
func perElement(name string, in *ir.Tensor, out ir.Spec, do func(int64, float32) []byte) *ir.Tensor {
	r := &ir.Recipe{Name: name, In: []*ir.Tensor{in}, Out: []ir.Spec{out}}
	r.Run = func(_ context.Context, rs []io.ReaderAt, ws []io.Writer) error {
		x := make([]float32, in.Elems())
		if err := pass.NewFloats(rs[0], in.DType).Read(x, 0); err != nil {
			return err
		}
		for i, v := range x {
			if _, err := ws[0].Write(do(int64(i), v)); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Derive()[0]
}

// widened widens int8 values to floats.
func widened(codes *ir.Tensor, out ir.Spec) *ir.Tensor {
	r := &ir.Recipe{Name: "widen", In: []*ir.Tensor{codes}, Out: []ir.Spec{out}}
	r.Run = func(_ context.Context, rs []io.ReaderAt, ws []io.Writer) error {
		b := make([]byte, codes.Elems())
		if err := ir.ReadFull(rs[0], b, 0); err != nil {
			return err
		}
		for _, q := range b {
			if _, err := ws[0].Write(floats(float32(int8(q)))); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Derive()[0]
}

// reshaped is t's payload under another shape.
func reshaped(t *ir.Tensor, out ir.Spec) *ir.Tensor {
	r := &ir.Recipe{Name: "reshape", In: []*ir.Tensor{t}, Out: []ir.Spec{out}}
	r.View = func(rs []io.ReaderAt) io.ReaderAt { return rs[0] }
	return r.Derive()[0]
}

// A job is a model on its way through methods and files to a report.
type job struct {
	model   *ir.Model
	methods []*pass.Method
	set     map[string]string // options of each step
	in      Input             // the input of Build except the models

	rewritten *ir.Model // set by input: what was saved as the result
}

// input saves j's model, runs its methods over it, saves that too and opens both.
func (j *job) input(t testing.TB) Input {
	t.Helper()
	dir := t.TempDir()
	eval := ir.NewEval(dir)
	t.Cleanup(func() { _ = eval.Close() })
	in := j.in
	in.Eval, in.Tool, in.Version = eval, "mcompress", "v0"
	in.Workers = max(1, in.Workers)
	source := filepath.Join(dir, "net.onnx")
	in.Source = save(t, j.model, source, eval)
	work := open(t, source)
	steps := make([]pass.Options, len(j.methods))
	for i, m := range j.methods {
		steps[i] = newStep(t, m, j.set)
	}
	res, err := pass.Run(t.Context(), work.Model, eval, pass.Environment{Workers: 1}, steps)
	if err != nil {
		t.Fatal(err)
	}
	in.Rows = res.Rows
	text, err := (&pass.Recipe{Steps: steps}).Text(nil)
	if err != nil {
		t.Fatal(err)
	}
	in.Recipe = &Recipe{SHA256: fmt.Sprintf("%x", sha256.Sum256(text)), Text: string(text)}
	j.rewritten = work.Model
	in.Result = save(t, work.Model, filepath.Join(dir, "net.small.onnx"), eval)
	return in
}

func newStep(t testing.TB, m *pass.Method, set map[string]string) pass.Options {
	t.Helper()
	s, err := pass.NewStep(m, func(fs *flag.FlagSet) error {
		for k, v := range set {
			if err := fs.Set(k, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// save writes m and opens what was written.
func save(t testing.TB, m *ir.Model, path string, eval *ir.Eval) Model {
	t.Helper()
	written, err := onnx.Save(t.Context(), m, path,
		onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: eval, Digest: true})
	if err != nil {
		t.Fatal(err)
	}
	side := Model{Path: path, IR: open(t, path).Model}
	for _, w := range written {
		side.Files = append(side.Files, File{w.Name, w.Size, w.SHA256})
	}
	return side
}

func open(t testing.TB, path string) *onnx.File {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// build is the report of j.
func (j *job) build(t *testing.T) *Report {
	t.Helper()
	r, err := Build(t.Context(), j.input(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
