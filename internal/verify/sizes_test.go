package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// selecting lists x above a threshold in three ways: positions, distinct values and the values themselves; "all" is x.
func selecting(above float32) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 100}}}
	g.Inputs = append(g.Inputs, x)
	large := g.Insert(nil, "Greater", []*ir.Value{x, g.AddConst("t", scalar(above))})
	values := g.Insert(nil, "Compress", []*ir.Value{x, large}, ir.IntAttr("axis", 0))
	for name, v := range map[string]*ir.Value{
		"positions": g.Insert(nil, "NonZero", []*ir.Value{large}), "values": values,
		"distinct": g.Insert(nil, "Unique", []*ir.Value{values}),
		"all":      g.Insert(nil, "Neg", []*ir.Value{x}),
	} {
		v.Name = name
		g.AddOutput(v)
	}
	return m
}

// Outputs whose size depends on values are compared as far as they can be, whatever their sizes; the gates on their
// elements state why there is no value.
func TestOutputsSizedByValues(t *testing.T) {
	r := compared(t, selecting(0.3), selecting(0.5))
	by := map[string]verification.Output{}
	for _, o := range r.Outputs {
		by[o.Name] = o
	}
	if o := by["all"]; o.Sizes != nil || !o.Errors.Exact {
		t.Errorf("an output of one size: %+v", o)
	}
	for _, name := range []string{"values", "distinct"} {
		o := by[name]
		if o.Sizes == nil || o.Errors != nil || o.Agreement != nil || o.Sizes.Common == nil || o.Sizes.Of != 3 ||
			o.Sizes.Before <= o.Sizes.After {
			t.Errorf("%s: %+v, %+v", name, o, o.Sizes)
		}
	}
	// Positions above 0.5 are some of those above 0.3.
	o := by["positions"]
	if o.Sizes == nil || o.Agreement == nil ||
		math.Abs(*o.Agreement-float64(o.Sizes.After)/float64(o.Sizes.Before)) > 1e-9 || o.Sizes.Runs != 3 {
		t.Errorf("positions: %+v, %+v", o, o.Sizes)
	}
	for _, rule := range verification.Rules()[:2] {
		if v, why := rule.Value(r); !math.IsNaN(v) || !strings.Contains(why, "its size depends on values and differs") {
			t.Errorf("%s: %v, %q", rule.Name, v, why)
		}
	}
	if w := r.Worst(); w.Sizes == nil || !strings.Contains(w.Text(), "size depends on values and differs") {
		t.Errorf("the worst output is %+v", w)
	}
}

// A size that follows from the shapes of the inputs is a fault of the second model, also behind axes that the model
// declares as open.
func TestSizesThatFollowFromShapes(t *testing.T) {
	cut := func(end int64) *ir.Model {
		m := ir.NewModel()
		m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
		g := m.Graph
		x := g.AddValue("x")
		x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{Param: "n", N: -1}, {N: 4}}}
		g.Inputs = append(g.Inputs, x)
		ints := func(name string, n int64) *ir.Value {
			return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{1}}, Source: ir.Ints(n)})
		}
		y := g.Insert(nil, "Slice", []*ir.Value{x, ints("from", 0), ints("to", end), ints("axis", 1)})
		y.Name, y.Type = "y", &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{Param: "n", N: -1}, {Param: "rest", N: -1}}}
		g.AddOutput(y)
		return m
	}
	a, b := open(t, cut(3), nil), open(t, cut(2), nil)
	for _, first := range []engine.Session{a, struct{ engine.Session }{a}} {
		_, err := Compare(t.Context(), first, b, made(t, cut(3), 1), Options{})
		if _, infers := first.(typer); infers != (err != nil) {
			t.Errorf("infers types: %v, error %v", infers, err)
		}
	}
}

// Another size is never exact, whatever the values.
func TestDistanceOfAnotherSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		rank := 1 + r.IntN(3)
		shape := make([]int64, rank)
		for k := range shape {
			shape[k] = int64(1 + r.IntN(6))
		}
		other := append([]int64(nil), shape...)
		other[r.IntN(rank)] += int64(1 + r.IntN(3))
		dt := []ir.DType{ir.Float, ir.Float16, ir.Int64, ir.Uint8, ir.Bool}[r.IntN(5)]
		want, got := ir.NewArray(dt, shape...), ir.NewArray(dt, other...)
		if r.IntN(2) == 0 { // else zeros
			for k := range want.Data {
				want.Data[k] = byte(r.IntN(2))
			}
			for k := range got.Data {
				got.Data[k] = byte(r.IntN(2))
			}
		}
		for _, pair := range [][2]*ir.Array{{want, got}, {got, want}} {
			if noise, signal := Distance(pair[0], pair[1]); !(noise > 0) || !(signal > 0) {
				t.Errorf("case %d: %s and %s: noise %v of %v", i, pair[0], pair[1], noise, signal)
			}
		}
		if noise, _ := Distance(want, want); noise != 0 {
			t.Errorf("case %d: %s: noise %v of itself", i, want, noise)
		}
	}
}

// Detections are matched by their boxes, not by their position.
func TestBoxesAreMatchedByContent(t *testing.T) {
	a := ir.ArrayOf([]float32{0, 0, 10, 10, 20, 20, 30, 30, 50, 50, 60, 60}, 3, 4)
	b := ir.ArrayOf([]float32{50, 50, 60, 60, 0, 0, 10, 8}, 2, 4)
	d := &outputSums{}
	d.addSizes(a, b, true)
	s := d.sizes.result(d.sums.errors())
	if s.Boxes == nil || math.Abs(s.Boxes.Matched-0.8) > 1e-9 || math.Abs(*s.Boxes.Overlap-0.9) > 1e-9 {
		t.Errorf("got %+v", s.Boxes)
	}
	if text := fmt.Sprint(s.Text()); !strings.Contains(text,
		"3 → 2 rows in 1 of 0 runs (float[3,4] → float[2,4]) · boxes matched 80 %") {
		t.Error(text)
	}
}
