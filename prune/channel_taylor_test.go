package prune

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// typedInput adds a graph input.
func (b *bench) typedInput(shape ...int64) *ir.Value {
	x := b.g.AddValue("input")
	x.Type = &ir.Type{Elem: ir.Float}
	for _, n := range shape {
		x.Type.Shape = append(x.Type.Shape, ir.Dim{N: n})
	}
	b.g.Inputs = append(b.g.Inputs, x)
	return x
}

// columns is a matrix of so many rows, all of them these values.
func (b *bench) columns(name string, rows int, values ...float64) *ir.Value {
	return b.weight(name, ir.Float, []int64{int64(rows), int64(len(values))}, slices.Repeat(values, rows)...)
}

// Channels of small effect on the outputs are removed although their filters are the largest.
func TestTaylorImportanceIsTheEffectOnOutputs(t *testing.T) {
	by := func(rows ...float64) (values []float64) {
		for _, r := range rows {
			values = append(values, r, -r)
		}
		return values
	}
	for name, build := range map[string]func(b *bench) *ir.Value{
		"linear": func(b *bench) *ir.Value {
			h := b.node("Relu", []*ir.Value{b.node("MatMul", []*ir.Value{b.typedInput(2, 3), b.columns("w", 3, 8, 4, 2, 1)})})
			return b.node("MatMul", []*ir.Value{h, b.weight("v", ir.Float, []int64{4, 2}, by(.0001, .001, .1, 1)...)})
		},
		"class scores": func(b *bench) *ir.Value {
			h := b.node("MatMul", []*ir.Value{b.typedInput(2, 3), b.columns("w", 3, 8, 4, 2, 1)})
			return b.node("Softmax", []*ir.Value{b.node("MatMul",
				[]*ir.Value{h, b.weight("v", ir.Float, []int64{4, 2}, by(.0001, .001, .1, 1)...)})})
		},
		"consumer in another shape": func(b *bench) *ir.Value {
			h := b.node("MatMul", []*ir.Value{b.typedInput(2, 3), b.columns("w", 3, 8, 2, 4, 1)})
			shape := b.weight("shape", ir.Int64, []int64{2}, 4, 2)
			v := b.node("Reshape", []*ir.Value{b.weight("v", ir.Float, []int64{2, 2, 2}, by(.0001, .1, .001, 1)...), shape})
			return b.node("MatMul", []*ir.Value{h, v})
		},
		"queries and keys": func(b *bench) *ir.Value {
			x := b.typedInput(2, 3)
			q := b.node("MatMul", []*ir.Value{x, b.columns("w", 3, 40, 20, 2, 1)})
			k := b.node("MatMul", []*ir.Value{x, b.columns("v", 3, .001, .01, 10, 30)})
			return b.node("MatMul", []*ir.Value{q, b.node("Transpose", []*ir.Value{k}, ir.IntsAttr("perm", 1, 0))})
		},
	} {
		b := newBench(t)
		b.g.AddOutput(build(b))
		var w *ir.Value
		for _, v := range b.g.Consts() {
			if v.Name == "w" {
				w = v
			}
		}
		b.run(channelMethod, "importance", "taylor")
		if got := b.values(w); !slices.Equal(got, slices.Repeat([]float64{2, 1}, 3)) {
			t.Errorf("%s: got %v, want rows of 2, 1", name, got)
		}
	}
}

// mlp is a network of 4, 8, 4 and 2 neurons, of 72 multiply-accumulates.
func mlp(t *testing.T) (b *bench, macs func() int64) {
	b = newBench(t)
	ws := []*ir.Value{b.columns("a", 4, 1, 2, 3, 4, 5, 6, 7, 8), b.columns("b", 8, 4, 3, 2, 1), b.columns("c", 4, 1, -1)}
	x := b.typedInput(1, 4)
	for _, w := range ws {
		x = b.node("Relu", []*ir.Value{b.node("MatMul", []*ir.Value{x, w})})
	}
	b.g.AddOutput(x)
	return b, func() (sum int64) {
		for _, w := range ws {
			sum += w.Const.Elems()
		}
		return sum
	}
}

func TestChannelsWithinATarget(t *testing.T) {
	for name, c := range map[string]struct {
		options     []string
		least, most int64
	}{
		"l1":            {[]string{"target-macs", "0.5"}, 27, 36},
		"taylor":        {[]string{"target-macs", "0.5", "importance", "taylor"}, 27, 36},
		"all":           {[]string{"target-macs", "1"}, 72, 72},
		"multiple of 4": {[]string{"target-macs", "0.6", "round", "4"}, 40, 40},
	} {
		b, macs := mlp(t)
		b.run(channelMethod, c.options...)
		if n := macs(); n < c.least || n > c.most {
			t.Errorf("%s: %d multiply-accumulates, want %d to %d", name, n, c.least, c.most)
		}
	}
	b, _ := mlp(t)
	if _, err := b.try(channelMethod, "target-macs", "0.01"); err == nil ||
		!strings.Contains(err.Error(), "--target-macs 0.01") {
		t.Errorf("a target that one channel of each group exceeds: %v", err)
	}
}

// A target is a fraction of the model before the first step.
func TestTargetInSteps(t *testing.T) {
	b, macs := mlp(t)
	next := Channel{TargetMACs: 0.5, Round: 1}.InSteps()
	for _, c := range []struct {
		done float64
		most int64
	}{{0.5, 54}, {1, 36}} {
		if _, err := pass.Run(t.Context(), b.step.Model, b.step.Eval, b.step.Env, []pass.Options{next(c.done)}); err != nil {
			t.Fatal(err)
		}
		if n := macs(); n > c.most || n < c.most-9 {
			t.Errorf("%v of the steps: %d multiply-accumulates, want %d or a channel less", c.done, n, c.most)
		}
	}
}

func TestChannelOptionsThatExclude(t *testing.T) {
	for _, o := range []Channel{
		{Round: 1, TargetMACs: 1.5}, {Round: 1, TargetMACs: -0.5}, {Round: 1, TargetMACs: 0.5, Amounts: Amounts{{"w", 0.5}}},
	} {
		if err := o.Check(); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
