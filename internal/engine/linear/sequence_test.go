package linear

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A rotation by 90° turns the pair (a, b) into (-b, a); elements after the rotated part are unchanged.
func TestRotaryEmbeddingRotatesPairs(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float, ir.Float16, ir.BFloat16} {
		x := numbers(dt, []int64{1, 1, 6}, 1, 2, 3, 4, 5, 6)
		cos, sin := numbers(dt, []int64{2, 2}, 1, 1, 0, 0), numbers(dt, []int64{2, 2}, 0, 0, 1, 1)
		at := func(position int64, more ...*ir.Attr) call {
			attrs := append(more, ir.IntAttr("num_heads", 1), ir.IntAttr("rotary_embedding_dim", 4))
			return call{op: "RotaryEmbedding", attrs: attrs,
				in: []*ir.Array{x, cos, sin, ir.ArrayOf([]int64{position}, 1, 1)}}
		}
		want(t, at(0), x.Shape, []float64{1, 2, 3, 4, 5, 6}, 0)
		want(t, at(1), x.Shape, []float64{-3, -4, 1, 2, 5, 6}, 0)
		want(t, at(1, ir.IntAttr("interleaved", 1)), x.Shape, []float64{-2, 1, -4, 3, 5, 6}, 0)
		if _, err := at(2).run(); err == nil {
			t.Error("position 2 of 2 rows: no error")
		}
	}
}

// Rows per token, positions, and the start of the sequence are equivalent.
func TestRotaryEmbeddingPositions(t *testing.T) {
	x, cos, sin := waves(ir.Float, 1, 1, 2, 3, 4), waves(ir.Float, 2, 3, 2), waves(ir.Float, 3, 3, 2)
	ids := ir.ArrayOf([]int64{0, 1, 2}, 1, 3)
	want := result(t, call{op: "RotaryEmbedding", in: []*ir.Array{x, cos, sin, ids}}, 0)
	rows := []*ir.Array{x, {DType: ir.Float, Shape: []int64{1, 3, 2}, Data: cos.Data},
		{DType: ir.Float, Shape: []int64{1, 3, 2}, Data: sin.Data}}
	near(t, "rows", result(t, call{op: "RotaryEmbedding", in: rows}, 0), want, 0)
	begin := []*ir.Array{x, ir.ArrayOf([]int64{0}, 1), cos, sin}
	near(t, "beginning", result(t, call{domain: microsoft, op: "RotaryEmbedding", in: begin}, 0), want, 0)
}

// With states of one element: S = e^g·S + b·k·(v - e^g·S·k), y = scale·S·q.
func TestLinearAttentionRules(t *testing.T) {
	q, k, v, g, b := []float64{1, 2, 3}, []float64{0.5, -1, 2}, []float64{3, 4, -1}, []float64{-0.5, 0, -1},
		[]float64{0.5, 1, 0.25}
	at := func(x []float64) *ir.Array { return numbers(ir.Float, []int64{1, 3, 1}, x...) }
	for rule, has := range map[string][2]bool{"linear": {}, "gated": {true, false}, "delta": {false, true},
		"gated_delta": {true, true}} {
		in := []*ir.Array{at(q), at(k), at(v), numbers(ir.Float, []int64{1, 1, 1, 1}, 0.75), nil, nil}
		s, y := 0.75, []float64{}
		if has[0] {
			in[4] = at(g)
		}
		if has[1] {
			in[5] = at(b)
		}
		for t := range q {
			x := v[t]
			if has[0] {
				s *= math.Exp(g[t])
			}
			if has[1] {
				x = b[t] * (v[t] - s*k[t])
			}
			s += k[t] * x
			y = append(y, 2*s*q[t])
		}
		attrs := headAttrs(1, 1, ir.StringAttr("update_rule", rule), ir.FloatAttr("scale", 2))
		c := call{op: "LinearAttention", attrs: attrs, in: in, outputs: 2}
		near(t, rule, result(t, c, 0), y, 1e-5)
		near(t, rule+" state", result(t, c, 1), []float64{s}, 1e-5)
		if c.in = in[:4]; has[0] || has[1] {
			if _, err := c.run(); err == nil {
				t.Errorf("%s without its inputs: no error", rule)
			}
		}
	}
}

// A sequence in two parts gives the same result as the whole.
func TestStatesAreCarriedOver(t *testing.T) {
	cut := func(a *ir.Array, axis int, from, to int64) *ir.Array {
		outer, inner := int64(1), int64(1)
		for i, d := range a.Shape {
			if i < axis {
				outer *= d
			} else if i > axis {
				inner *= d
			}
		}
		var x []float64
		for i := range outer {
			x = append(x, values(a)[(i*a.Shape[axis]+from)*inner:(i*a.Shape[axis]+to)*inner]...)
		}
		shape := slices.Clone(a.Shape)
		shape[axis] = to - from
		return numbers(a.DType, shape, x...)
	}
	t.Run("LinearAttention", func(t *testing.T) {
		in := []*ir.Array{waves(ir.Float, 1, 2, 5, 8), waves(ir.Float, 2, 2, 5, 4), waves(ir.Float, 3, 2, 5, 6), nil,
			waves(ir.Float, 4, 2, 5, 4), waves(ir.Float, 5, 2, 5, 1)}
		c := call{op: "LinearAttention", attrs: headAttrs(4, 2), in: in, outputs: 2, workers: 2}
		whole, state := result(t, c, 0), result(t, c, 1)
		var last []*ir.Array
		for _, part := range [][2]int64{{0, 3}, {3, 5}} {
			p := c
			p.in = make([]*ir.Array, 6)
			for i, a := range in {
				if a != nil {
					p.in[i] = cut(a, 1, part[0], part[1])
				}
			}
			if last != nil {
				p.in[inState] = last[1]
			}
			var err error
			if last, err = p.run(); err != nil {
				t.Fatal(err)
			}
		}
		near(t, "state", values(last[1]), state, 1e-5)
		near(t, "output", values(last[0]), values(cut(numbers(ir.Float, []int64{2, 5, 12}, whole...), 1, 3, 5)), 1e-5)
	})
	t.Run("CausalConvWithState", func(t *testing.T) {
		x, w, b := waves(ir.Float, 1, 2, 3, 7), waves(ir.Float, 2, 3, 1, 4), waves(ir.Float, 3, 3)
		c := call{op: "CausalConvWithState", attrs: []*ir.Attr{ir.StringAttr("activation", "silu")},
			in: []*ir.Array{x, w, b}, outputs: 2}
		whole, state := result(t, c, 0), result(t, c, 1)
		c.in[0] = cut(x, 2, 0, 6)
		first, err := c.run()
		if err != nil {
			t.Fatal(err)
		}
		c.in = []*ir.Array{cut(x, 2, 6, 7), w, b, first[1]}
		near(t, "output", result(t, c, 0), values(cut(numbers(ir.Float, x.Shape, whole...), 2, 6, 7)), 1e-6)
		near(t, "state", result(t, c, 1), state, 0)
	})
}

// y[t] = 10 + 3·x[t-2] + 2·x[t-1] + x[t], with zeros before the first.
func TestCausalConv(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float, ir.Float16, ir.BFloat16} {
		in := []*ir.Array{numbers(dt, []int64{1, 1, 4}, 1, 2, 3, 4), numbers(dt, []int64{1, 1, 3}, 3, 2, 1),
			numbers(dt, []int64{1}, 10)}
		c := call{op: "CausalConvWithState", in: in, outputs: 2}
		want(t, c, []int64{1, 1, 4}, []float64{11, 14, 20, 26}, 0)
		near(t, "state", result(t, c, 1), []float64{3, 4}, 0)
	}
}

// A closed gate is the limit, also at infinity, whatever the type: as in Swish.
func TestSwiGLUAtInfinity(t *testing.T) {
	inf := math.Inf(1)
	for _, dt := range []ir.DType{ir.Double, ir.Float, ir.Float16, ir.BFloat16} {
		for alpha, want := range map[float32][]float64{1: {0, inf, math.NaN()}, 1.702: {0, inf, math.NaN()},
			-2: {-inf, 0, math.NaN()}} {
			a, b := numbers(dt, []int64{3}, -inf, inf, math.NaN()), numbers(dt, []int64{3}, 1, 1, 1)
			got := result(t, call{op: "SwiGLU", attrs: []*ir.Attr{ir.FloatAttr("alpha", alpha)}, in: []*ir.Array{a, b}}, 0)
			for i, v := range got {
				if v != want[i] && !(v != v && want[i] != want[i]) {
					t.Errorf("%s, alpha %v: %v, want %v", dt, alpha, got, want)
					break
				}
			}
		}
	}
}

func TestSwiGLU(t *testing.T) {
	for dt, within := range map[ir.DType]float64{ir.Double: 1e-15, ir.Float: 1e-6, ir.Float16: 2e-3,
		ir.BFloat16: 2e-2} {
		a, b := waves(dt, 1, 1000), waves(dt, 2, 1000)
		x, y := values(a), values(b)
		for i := range x {
			x[i] = x[i] / (1 + math.Exp(-1.5*x[i])) * y[i]
		}
		want(t, call{op: "SwiGLU", attrs: []*ir.Attr{ir.FloatAttr("alpha", 1.5)}, in: []*ir.Array{a, b}, workers: 2},
			[]int64{1000}, x, within)
	}
	if _, err := (call{op: "SwiGLU", in: []*ir.Array{waves(ir.Float, 1, 2), waves(ir.Float, 1, 1)}}).run(); err == nil {
		t.Error("no error for shapes that differ")
	}
}
