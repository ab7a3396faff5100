package prune

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// drawPlaces are some of n places in their order, or nil for all.
func drawPlaces(t *rapid.T, n int64) []int64 {
	places := []int64{}
	for i := range n {
		if rapid.Bool().Draw(t, "stays") {
			places = append(places, i)
		}
	}
	if len(places) == 0 || rapid.Bool().Draw(t, "whole") {
		return nil
	}
	return places
}

// entries is what pick means: the element at each index is the one at the place of each of
// its coordinates, or zero.
func entries(x []byte, shape []int64, places [][]int64) []byte {
	out := slices.Clone(shape)
	for k, ps := range places {
		if ps != nil {
			out[k] = int64(len(ps))
		}
	}
	b := make([]byte, product(out))
	for i := range b {
		rest, from, stride, inside := int64(i), int64(0), int64(1), true
		for k := len(shape) - 1; k >= 0; k-- {
			at := rest % out[k]
			rest /= out[k]
			if places[k] != nil {
				at = places[k][at]
			}
			inside = inside && at >= 0
			from += at * stride
			stride *= shape[k]
		}
		if inside {
			b[i] = x[from]
		}
	}
	return b
}

func TestPickedEntriesAndBack(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.Int64Range(1, 9), 1, 4).Draw(t, "shape")
		x := rapid.SliceOfN(rapid.Byte(), int(product(shape)), int(product(shape))).Draw(t, "payload")
		places := make([][]int64, len(shape))
		for k, n := range shape {
			places[k] = drawPlaces(t, n)
		}
		whole := &ir.Tensor{Spec: ir.Spec{DType: ir.Int8, Shape: shape}, Source: ir.Mem(x)}
		some := ir.IndexSelect("test", whole, places)
		want := entries(x, shape, places)
		if some.Bytes() != int64(len(want)) || !bytes.Equal(readAt(t, b, some, 0, some.Bytes()), want) {
			t.Fatalf("%v of %v at %v", readAt(t, b, some, 0, some.Bytes()), x, places)
		}
		from := rapid.Int64Range(0, some.Bytes()-1).Draw(t, "from")
		to := rapid.Int64Range(from+1, some.Bytes()).Draw(t, "to")
		if !bytes.Equal(readAt(t, b, some, from, to), want[from:to]) {
			t.Fatalf("from %d to %d it reads otherwise", from, to)
		}
		back := scatterBack(shape, places)
		if got := readAt(t, b, ir.IndexSelect("test", some, back), 0, whole.Bytes()); !bytes.Equal(got,
			entries(want, some.Shape, back)) {
			t.Fatalf("back: %v", got)
		}
	})
}

func readAt(t *rapid.T, b *bench, x *ir.Tensor, from, to int64) []byte {
	r, err := b.step.Eval.Open(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, to-from)
	if err := ir.ReadFull(r, p, from); err != nil {
		t.Fatal(err)
	}
	return p
}

// twoLayers are filters of these norms and a layer that reads them.
func twoLayers(t *testing.T, norms ...float64) (b *bench, first *ir.Value) {
	b = newBench(t)
	n := int64(len(norms))
	first = b.weight("first", ir.Float, []int64{n, 1, 1, 1}, norms...)
	hidden := b.node("Conv", []*ir.Value{nil, first})
	b.g.AddOutput(b.node("Conv", []*ir.Value{hidden, b.weight("second", ir.Float, []int64{2, n, 1, 1},
		make([]float64, 2*n)...)}))
	return b, first
}

func TestChannelsOfSmallestNormArePruned(t *testing.T) {
	b, first := twoLayers(t, 3, -1, 2, 1, -4, 1)
	b.run(channelMethod, "amount", "0.34") // 2 of 6: of equal norms the first ones
	if got := b.values(first); !slices.Equal(got, []float64{3, 2, -4, 1}) {
		t.Errorf("%v stay", got)
	}
}

// Channels of two layers that are added to one another are pruned by the sum of both norms.
func TestNormsOfAGroupAreAdded(t *testing.T) {
	b := newBench(t)
	x := b.weight("x", ir.Float, []int64{3, 1, 1, 1}, 1, 2, 3)
	y := b.weight("y", ir.Float, []int64{3, 1, 1, 1}, 3, 1.5, 1)
	sum := b.node("Add", []*ir.Value{b.node("Conv", []*ir.Value{nil, x}), b.node("Conv", []*ir.Value{nil, y})})
	b.g.AddOutput(b.node("Conv", []*ir.Value{sum, b.weight("z", ir.Float, []int64{1, 3, 1, 1}, 1, 1, 1)}))
	b.run(channelMethod, "amount", "0.4")
	if !slices.Equal(b.values(x), []float64{1, 3}) || !slices.Equal(b.values(y), []float64{3, 1}) {
		t.Errorf("%v and %v stay", b.values(x), b.values(y))
	}
}

func TestHowManyChannelsStay(t *testing.T) {
	for _, c := range []struct {
		n             int
		amount, round string
		want          int64
	}{
		{20, "0.5", "1", 10}, {20, "0.5", "8", 16}, {20, "0.9", "8", 8}, {5, "1", "1", 1}, {6, "0.5", "4", 4},
		{5, "0.9", "4", 4},
		{5, "0.5", "8", 5}, {3, "0.1", "1", 3},
	} {
		norms := make([]float64, c.n)
		for i := range norms {
			norms[i] = float64(i + 1)
		}
		b, first := twoLayers(t, norms...)
		b.run(channelMethod, "amount", c.amount, "round", c.round)
		if got := first.Const.Shape[0]; got != c.want {
			t.Errorf("%d channels, amount %s, round %s: %d stay, want %d", c.n, c.amount, c.round, got, c.want)
		}
	}
}

// A layer that is not selected keeps its channels, and so do those that share them.
func TestLayersThatAreNotSelectedStay(t *testing.T) {
	for _, options := range [][]string{{"skip", "first"}, {"only", "second"}, {"min-size", "100"},
		{"amounts", "first=0"}} {
		b, first := twoLayers(t, 1, 2, 3, 4)
		rows := b.run(channelMethod, options...)
		if rowOf(t, rows, "first").Status != pass.Skipped || rowOf(t, rows, "second").Status != pass.Skipped ||
			len(b.values(first)) != 4 {
			t.Errorf("%v: %d channels stay", options, len(b.values(first)))
		}
	}
}
