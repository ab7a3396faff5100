package quantize

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// tableVariants store tables in a form of which rows are looked up, and restored after that.
var tableVariants = slices.Concat(palettes[:len(palettes)-2], []variant{ // samples are of products
	{Palette{}.Method(), []string{"entries=64", "vector=2"}},
	{Palette{}.Method(), []string{"entries=4", "vector=4", "granularity=per-group", "group=3"}},
	{Float8{}.Method(), nil},
	{Float8{}.Method(), []string{"type=e5m2"}},
	{Float8{}.Method(), []string{"per-tensor"}},
	{Float16{}.Method(), nil},
	{BFloat16{}.Method(), nil},
})

// A lookupSketch looks up rows of a table, its first constant, by indices that depend on inputs: negative ones, too, of
// either type, and of any rank.
type lookupSketch struct {
	*builder
	ids *ir.Value // one of them
}

func lookupModel(t *testing.T, elem ir.DType, shape ...int64) lookupSketch {
	s := lookupSketch{builder: newBuilder(t, 19)}
	table := func() *ir.Value { s.elem = elem; defer func() { s.elem = ir.Float }(); return s.weight("w", shape...) }()
	x := s.input("x", 2, 3, 1)
	for i, to := range []ir.DType{ir.Int64, ir.Int32} {
		for rank, axes := range [][]int64{{1}, {6}, {2, 3}, {3, 2, 1}} {
			row := s.node("Mul", []*ir.Value{x, s.floats(nil, float32(shape[0])/3.5)})
			ids := s.node("Reshape",
				[]*ir.Value{s.node("Clip", []*ir.Value{row, s.floats(nil, float32(-shape[0])), s.floats(nil, float32(shape[0]-1))}),
					s.ints(-1)})
			if rank == 0 {
				ids = s.node("Slice", []*ir.Value{ids, s.ints(0), s.ints(1)})
			}
			ids = s.node("Reshape", []*ir.Value{s.node("Cast", []*ir.Value{ids}, ir.IntAttr("to", int64(to))), s.ints(axes...)})
			if s.ids == nil {
				s.ids = ids
			}
			rows := s.node("Gather", []*ir.Value{table, ids})
			if elem != ir.Float {
				rows = s.node("Cast", []*ir.Value{rows}, ir.IntAttr("to", int64(ir.Float)))
			}
			s.output(fmt.Sprint("y", i, rank), rows, slices.Concat(axes, shape[1:])...)
		}
	}
	return s
}

// Rows of tables that are looked up in their stored form are those of the restored table to the bit, whatever their
// length. Where stretches of rows, blocks and groups are whole bytes, nothing of the size of the table is computed from
// constants, which a runtime would do when it loads the model.
func TestLookupsEqualTheRestoredTable(t *testing.T) {
	w := conform.Start(t)
	for i, v := range tableVariants {
		for _, shape := range conform.Part(i, 2,
			[][]int64{{96, 64}, {65, 60}, {51, 37}, {129, 300}, {20, 5, 24}, {96, 100}}) {
			for _, elem := range []ir.DType{ir.Float, ir.Float16} {
				half := v.method == Float16{}.Method() || v.method == BFloat16{}.Method()
				if elem != ir.Float && (half || shape[0] != 65) {
					continue
				}
				t.Run(fmt.Sprint(v, " ", elem, shape), func(t *testing.T) {
					s := lookupModel(t, elem, shape...)
					dir := t.TempDir()
					out, twin := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")
					if restoredModel(t, v, s.save(), out, twin) != 1 {
						t.Skip("not smaller")
					}
					if err := w.Check(out, true); err != nil {
						t.Error(err)
					}
					outputs, err := w.Compare(twin, out, conform.Options{})
					if err != nil {
						t.Fatal(err)
					}
					for _, o := range outputs {
						if !o.Equal {
							t.Errorf("%s: %.1f dB", o.Name, float64(o.SQNR))
						}
					}
					sameModels(t, twin, out)
					wholeBytes := shape[1]%4 == 0 || len(shape) > 2
					for _, odd := range []string{"vector=", "block=7", "block=51"} {
						wholeBytes = wholeBytes && !strings.Contains(v.String(), odd)
					}
					if wholeBytes && expands(t, out, (ir.Spec{Shape: shape}).Elems()) {
						t.Error("the table is expanded")
					}
				})
			}
		}
	}
}

// expands reports whether nodes of constants alone, which runtimes fold, compute elems elements or more.
func expands(t *testing.T, path string, elems int64) bool {
	t.Helper()
	constant, shapes := map[*ir.Value]bool{}, opset.NewShapes()
	for n := range opened(t, path).Model.Graph.Nodes() {
		if len(n.Inputs()) == 0 || slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool {
			return v.Const == nil && !constant[v]
		}) {
			continue
		}
		v := n.Outputs[0]
		constant[v] = true
		dims, known := shapes.Of(v)
		if !known {
			t.Fatalf("the shape of %s is not known", n.Op)
		}
		size := int64(1)
		for _, d := range dims {
			size *= d.N
		}
		if size >= elems {
			return true
		}
	}
	return false
}

// A table that Gather also looks up along another axis, or that something else reads, is expanded for these.
func TestLookupsNextToOtherConsumers(t *testing.T) {
	for _, v := range []variant{{Palette{}.Method(), nil}, {Palette{}.Method(), []string{"entries=64"}},
		{Float8{}.Method(), nil}, {Float16{}.Method(), nil}} {
		for _, other := range []string{"Gather", "MatMul", "equal"} {
			s := lookupModel(t, ir.Float, 96, 64)
			table := s.Consts()[0]
			switch other {
			case "Gather":
				s.output("other", s.node("Gather", []*ir.Value{table, s.ids}, ir.IntAttr("axis", 1)), 96, 1)
			default:
				if other == "equal" {
					table = s.AddConst("again", table.Const)
				}
				s.output("other", s.node("MatMul", []*ir.Value{s.input("z", 2, 96), table}), 2, 64)
			}
			out, twin := filepath.Join(t.TempDir(), "out.onnx"), filepath.Join(t.TempDir(), "twin.onnx")
			if restoredModel(t, v, s.save(), out, twin) == 0 {
				t.Fatalf("%s %s: nothing was changed", v, other)
			}
			outputs, err := conform.Start(t).Compare(twin, out, conform.Options{})
			if err != nil || conform.LowestSQNR(outputs) < 110 {
				t.Errorf("%s %s: %v, %.1f dB", v, other, err, conform.LowestSQNR(outputs))
			}
			sameModels(t, twin, out)
			large := 0
			for _, c := range opened(t, out).Model.Graph.Consts() {
				if c.Const.Bytes() >= 96*64/2 {
					large++
				}
			}
			if large != 1 {
				t.Errorf("%s %s: the table is stored %d times", v, other, large)
			}
		}
	}
}

// Rows are looked up in branches, too, and the constants of a table stay outside.
func TestLookupsInABranch(t *testing.T) {
	for _, v := range []variant{{Palette{}.Method(), nil}, {Palette{}.Method(), []string{"block=3", "entries=256"}},
		{Float8{}.Method(), nil}, {BFloat16{}.Method(), nil}} {
		s := lookupModel(t, ir.Float, 96, 60)
		table := s.Consts()[0]
		positive := s.node("Greater", []*ir.Value{s.node("ReduceMax", []*ir.Value{s.ids}, ir.IntAttr("keepdims", 0)),
			s.AddConst("zero", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64}, Source: ir.Ints(0)})})
		y := s.node("If", []*ir.Value{positive})
		for i, name := range []string{"then_branch", "else_branch"} {
			g := ir.NewSubgraph(s.Graph, y.Producer())
			g.Name = name
			y.Producer().SetAttr(&ir.Attr{Name: name, Type: ir.AttrGraph, Graph: g})
			b := s.in(g)
			b.output(fmt.Sprint("b", i), b.node([]string{"Neg", "Relu"}[i],
				[]*ir.Value{b.node("Gather", []*ir.Value{table, s.ids})}), 1, 60)
		}
		s.output("y", y, 1, 60)
		out, twin := filepath.Join(t.TempDir(), "out.onnx"), filepath.Join(t.TempDir(), "twin.onnx")
		if restoredModel(t, v, s.save(), out, twin) != 1 {
			t.Fatalf("%s: nothing was changed", v)
		}
		outputs, err := conform.Start(t).Compare(twin, out, conform.Options{})
		if err != nil || conform.LowestSQNR(outputs) < 150 {
			t.Errorf("%s: %v, %.1f dB", v, err, conform.LowestSQNR(outputs))
		}
		sameModels(t, twin, out)
		if expands(t, out, 96*60) {
			t.Errorf("%s: the table is expanded", v)
		}
	}
}
