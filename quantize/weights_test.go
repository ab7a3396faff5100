package quantize

import (
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
)

var (
	dyn       = variant{DynamicInt8{}.Method(), nil}
	dynTables = variant{DynamicInt8{}.Method(), []string{"embeddings"}}
	weights   = variant{WeightInt8{}.Method(), nil}
	all       = []variant{dyn, {DynamicInt8{}.Method(), []string{"asymmetric"}}, weights, {Float16{}.Method(), nil}}
)

// A tied embedding is one table: the head reads it transposed.
func tied(t *testing.T) *builder {
	s := newBuilder(t, 13)
	table := s.weight("table", 96, 64)
	ids := s.input("ids", 3)
	ids.Type.Elem = ir.Int64
	x := s.node("Gather", []*ir.Value{table, ids})
	head := s.node("Transpose", []*ir.Value{table}, ir.IntsAttr("perm", 1, 0))
	s.output("y", s.node("MatMul", []*ir.Value{x, head}), 3, 96)
	return s
}

func TestTiedEmbeddingIsStoredOnce(t *testing.T) {
	r := tied(t).apply(dynTables, 25)
	r.expect(map[string]string{"table": "changed"})
	if n := r.int8Constants(96); n != 1 {
		t.Errorf("%d quantized tables", n)
	}
	r = tied(t).apply(weights, 25)
	r.expect(map[string]string{"table": "changed cast-mul"})
	if n := r.int8Constants(96); n != 1 {
		t.Errorf("%d quantized tables", n)
	}
}

func TestTiedEmbeddingIsKeptInFloatWithoutItsLookup(t *testing.T) {
	r := variant{DynamicInt8{}.Method(), nil}.apply(t, tied(t).save(), t.TempDir()+"/out.onnx")
	if changed(r) != 0 || r.Report.Ledger[0].Why() != "Gather needs the float weight" {
		t.Errorf("%+v", r.Report.Ledger)
	}
}

// One weight in both orientations: the scales of one of them are along the reduction axis.
func TestOneWeightInBothOrientations(t *testing.T) {
	for _, shape := range [][]int64{{5, 48}, {2, 3, 5, 48}} {
		s := newBuilder(t, 13)
		w := s.weight("w", 48, 48)
		x := s.input("x", shape...)
		y := s.node("MatMul", []*ir.Value{x, w})
		turned := s.node("Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0))
		z := s.node("MatMul", []*ir.Value{s.node("Tanh", []*ir.Value{y}), turned})
		s.output("z", z, shape...)
		for _, v := range all {
			r := s.apply(v, 25)
			r.expect(map[string]string{"w": "changed"})
			if n := r.int8Constants(48); n > 1 {
				t.Errorf("%s: %d quantized matrices", v, n)
			}
		}
	}
}

// On the left of batches, and in both orientations there, too.
func TestOneWeightOnBothSides(t *testing.T) {
	s := newBuilder(t, 13)
	w := s.weight("w", 48, 48)
	x := s.input("x", 2, 3, 48, 48)
	left := s.node("MatMul", []*ir.Value{w, x})
	right := s.node("MatMul", []*ir.Value{s.node("Tanh", []*ir.Value{left}), w})
	turned := s.node("Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0))
	s.output("y", s.node("MatMul", []*ir.Value{turned, s.node("Tanh", []*ir.Value{right})}), 2, 3, 48, 48)
	for _, v := range all {
		s.apply(v, 22).expect(map[string]string{"w": "changed"})
	}
}

// A chain of views, some of them before the first node that stays.
func TestWeightsThroughViews(t *testing.T) {
	s := newBuilder(t, 13)
	w := s.weight("w", 4, 12, 64)
	v := s.node("Identity", []*ir.Value{w})
	v = s.node("Reshape", []*ir.Value{v, s.ints(0, -1)})
	v = s.node("Reshape", []*ir.Value{v, s.ints(-1, 64)})
	v = s.node("Transpose", []*ir.Value{v}, ir.IntsAttr("perm", 1, 0))
	v = s.node("Unsqueeze", []*ir.Value{v, s.ints(0)})
	v = s.node("Squeeze", []*ir.Value{v, s.ints(0)})
	s.output("y", s.node("MatMul", []*ir.Value{s.input("x", 3, 64), v}), 3, 48)
	s.apply(dyn, 25).expect(map[string]string{"w": "skipped not supported through Unsqueeze"})
	s.apply(weights, 25).expect(map[string]string{"w": "changed cast-mul"})
}

func TestReasonsArePrecise(t *testing.T) {
	s := newBuilder(t, 13)
	x := s.input("x", 3, 64)
	y := s.node("Gemm", []*ir.Value{x, s.weight("w", 64, 64), s.weight("bias", 64)})
	y = s.node("Add", []*ir.Value{y, s.node("MatMul", []*ir.Value{s.weight("a", 3, 32), s.weight("b", 32, 64)})})
	y = s.node("Mul", []*ir.Value{y, s.weight("gain", 64)})
	y = s.node("MatMul", []*ir.Value{y, s.weight("small", 64, 1)})
	s.output("y", y, 3, 1)
	s.apply(dyn, 20).expect(map[string]string{
		"w":     "changed matmul-integer",
		"bias":  "skipped bias of Gemm, kept in float",
		"a":     "skipped MatMul multiplies two constants",
		"gain":  "skipped not supported: weight of Mul: input 1",
		"small": "skipped would become larger",
	})
}

// The reason of an excluded weight names the option.
func TestSelection(t *testing.T) {
	s := newBuilder(t, 13)
	y := s.node("MatMul", []*ir.Value{s.input("x", 3, 64), s.weight("first", 64, 64)})
	y = s.node("Gemm", []*ir.Value{y, s.weight("second", 64, 64)})
	y = s.node("MatMul", []*ir.Value{y, s.weight("third", 64, 32)})
	s.output("y", y, 3, 32)
	for _, c := range []struct{ option, first, second, third string }{
		{"only=op:MatMul", "changed", "skipped not selected by --only", "changed"},
		{"skip=f*,*ird", "skipped excluded by --skip", "changed", "skipped excluded by --skip"},
		{"min-size=3000", "changed", "changed", "skipped below --min-size: 3000"},
	} {
		for _, m := range all {
			r := s.apply(variant{m.method, []string{c.option}}, 20)
			r.expect(map[string]string{"first": c.first, "second": c.second, "third": c.third})
		}
	}
}

// Weights of every scope, read in the innermost: in branches, and only there.
func TestScopes(t *testing.T) {
	s := newBuilder(t, 13)
	x, flag := s.input("x", 3, 48), s.input("flag")
	flag.Type = &ir.Type{Elem: ir.Bool, Shape: []ir.Dim{}}
	outer, turned := s.weight("outer", 48, 48), s.weight("turned", 48, 48)
	branch := func(own string) func(*builder, *ir.Value) *ir.Value {
		return func(b *builder, x *ir.Value) *ir.Value {
			y := b.node("MatMul", []*ir.Value{x, b.weight(own, 48, 48)})
			y = b.node("Gemm", []*ir.Value{y, turned}, ir.IntAttr("transB", 1))
			return b.node("MatMul", []*ir.Value{b.node("Tanh", []*ir.Value{y}), outer})
		}
	}
	y := s.choice(flag, x, branch("then"), func(b *builder, x *ir.Value) *ir.Value {
		return b.choice(flag, x, branch("inner_then"), branch("inner_else"))
	})
	s.output("y", y, 3, 48)
	for _, v := range all {
		s.apply(v, 22).expect(map[string]string{"outer": "changed", "turned": "changed", "then": "changed",
			"inner_else": "changed"})
	}
}

// choice is an If whose branches compute from x of the outer scope.
func (s *builder) choice(flag, x *ir.Value, branches ...func(*builder, *ir.Value) *ir.Value) *ir.Value {
	y := s.node("If", []*ir.Value{flag})
	n := y.Producer()
	for i, build := range branches {
		name := []string{"then_branch", "else_branch"}[i]
		g := ir.NewSubgraph(s.Graph, n)
		g.Name = name
		n.SetAttr(&ir.Attr{Name: name, Type: ir.AttrGraph, Graph: g})
		b := s.in(g)
		b.output(name+"_y", build(b, x), 3, 48)
	}
	return y
}

// A weight that callers can replace, from IR 4 on, is left alone. Below IR 4 every weight is an input: all are
// compressed and stop being inputs, or with KeepIR all stay.
func TestWeightsThatAreInputs(t *testing.T) {
	s := newBuilder(t, 13)
	w := s.weight("w", 48, 48)
	s.Inputs = append(s.Inputs, w)
	s.output("y", s.node("MatMul", []*ir.Value{s.input("x", 3, 48), w}), 3, 48)
	for _, v := range all {
		s.apply(v, 25).expect(map[string]string{"w": "skipped graph input, replaceable by callers"})
	}
	s.Model().IRVersion = 3
	for _, v := range all {
		s.apply(v, 25).expect(map[string]string{"w": "changed"})
	}
	for _, keep := range []bool{false, true} {
		r := s.apply(dyn, 25, func(o *job.Options) { o.KeepIR = keep })
		m := opened(t, r.out).Model
		if keep != (m.IRVersion == 3) {
			t.Errorf("keep %v: IR version %d", keep, m.IRVersion)
		}
		for _, v := range m.Graph.Consts() {
			if v.IsInput() != keep {
				t.Errorf("keep %v: %s is an input: %v", keep, v.Name, v.IsInput())
			}
		}
	}
}

// An operator that cannot be raised keeps the opset, and the ledger names it.
func TestOpsetsThatCannotBeRaised(t *testing.T) {
	s := newBuilder(t, 10)
	x := s.input("x", 3, 48)
	y := s.node("MatMul", []*ir.Value{x, s.weight("w", 48, 48)})
	y = s.node("Resize", []*ir.Value{y, s.AddConst("scales", quanttest.TensorOf(ir.Float, []int64{2}, []float32{2, 0.5}))})
	s.output("y", y, 6, 24)
	r := s.apply(weights.on("ort"), 25)
	r.expect(map[string]string{"w": "changed cast-mul dense at run time: opset 10, Resize"})
	out := t.TempDir() + "/out.onnx"
	if d := dyn.apply(t, s.save(), out); changed(d) != 0 || opened(t, out).Model.Opset("") != 10 {
		t.Errorf("%+v", d.Report.Ledger)
	}
	s.apply(variant{Float16{}.Method(), nil}, 60).expect(map[string]string{"w": "changed cast-float16"})
}

// Batched weights on either side, against activations of fewer, as many and more axes.
func TestBatchedWeights(t *testing.T) {
	for _, c := range []struct {
		left     bool
		act, out []int64
	}{
		{true, []int64{32, 5}, []int64{3, 48, 5}},
		{true, []int64{3, 32, 5}, []int64{3, 48, 5}},
		{true, []int64{2, 1, 32, 5}, []int64{2, 3, 48, 5}},
		{false, []int64{5, 48}, []int64{3, 5, 32}},
		{false, []int64{1, 5, 48}, []int64{3, 5, 32}},
		{false, []int64{2, 3, 5, 48}, []int64{2, 3, 5, 32}},
	} {
		s := newBuilder(t, 13)
		x, w := s.input("x", c.act...), s.weight("w", 3, 48, 32)
		in := []*ir.Value{x, w}
		if c.left {
			in = []*ir.Value{w, x}
		}
		s.output("y", s.node("MatMul", in), c.out...)
		for _, v := range append(all, variant{DynamicInt8{}.Method(), []string{"per-tensor", "weight-type=uint8"}}) {
			s.apply(v, 22).expect(map[string]string{"w": "changed"})
		}
	}
}

// A layer whose Add and activation ONNX Runtime would fuse keeps its integers.
func TestLayersOfSingleOperators(t *testing.T) {
	s := newBuilder(t, 13)
	y := s.input("x", 3, 64)
	for range 3 {
		y = s.node("Relu", []*ir.Value{s.node("Add",
			[]*ir.Value{s.node("MatMul", []*ir.Value{y, s.weight("w", 64, 64)}), s.weight("b", 64)})})
	}
	s.output("y", y, 3, 64)
	ops, err := conform.Start(t).OptimizedOps(s.apply(weights.on("ort"), 25).out, conform.Options{})
	if err != nil || ops[nBits] != 3 || ops["DequantizeLinear"] != 0 {
		t.Errorf("%v, %v", ops, err)
	}
}
