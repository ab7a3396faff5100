package prune

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// An axisUse is an operator's use of the elements of a weight, by coordinates,
// as the operators' definitions do: which product sum an element belongs to, its place in
// that sum, and its output channel.
type axisUse struct {
	name  string
	shape []int64
	build func(b *bench, w *ir.Value)
	see   func(at []int64) (sum []int64, place int64, channel []int64)
}

func into(op string, input, inputs int, attrs ...*ir.Attr) func(*bench, *ir.Value) {
	return func(b *bench, w *ir.Value) {
		in := make([]*ir.Value, inputs)
		in[input] = w
		b.node(op, in, attrs...)
	}
}

func transposed(b *bench, w *ir.Value) {
	t := b.node("Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0))
	b.node("MatMul", []*ir.Value{nil, t})
}

func reshaped(b *bench, w *ir.Value) {
	shape := b.weight("shape", ir.Int64, []int64{2}, 12, 5)
	r := b.node("Reshape", []*ir.Value{w, shape})
	b.node("MatMul", []*ir.Value{nil, b.node("Identity", []*ir.Value{r})})
}

// kn is K×N, nk is N×K; leading axes are batches.
func kn(at []int64) ([]int64, int64, []int64) {
	n := len(at)
	lead := at[:n-2]
	return append(slices.Clone(lead), at[n-1]), at[n-2], append(slices.Clone(lead), at[n-1])
}

func nk(at []int64) ([]int64, int64, []int64) {
	n := len(at)
	return at[:n-1], at[n-1], at[:n-1]
}

var axisUses = []axisUse{
	{"MatMul right", []int64{10, 7}, into("MatMul", 1, 2), kn},
	{"MatMul right batched", []int64{2, 3, 6, 5}, into("MatMul", 1, 2), kn},
	{"MatMul left", []int64{5, 9}, into("MatMul", 0, 2), nk},
	{"MatMul left batched", []int64{3, 5, 8}, into("MatMul", 0, 2), nk},
	{"MatMul vector", []int64{11}, into("MatMul", 1, 2), func(at []int64) ([]int64, int64, []int64) {
		return nil, at[0], nil
	}},
	{"Gemm", []int64{8, 6}, into("Gemm", 1, 2), kn},
	{"Gemm transB", []int64{6, 9}, into("Gemm", 1, 2, ir.IntAttr("transB", 1)), nk},
	{"Gemm left", []int64{6, 9}, into("Gemm", 0, 2), nk},
	{"Gemm transA", []int64{9, 6}, into("Gemm", 0, 2, ir.IntAttr("transA", 1)), kn},
	{"Transpose", []int64{6, 10}, transposed, nk},
	{"Reshape", []int64{3, 4, 5}, reshaped, func(at []int64) ([]int64, int64, []int64) {
		return []int64{at[2]}, at[0]*4 + at[1], []int64{at[2]}
	}},
	{"Conv", []int64{4, 6, 3, 3}, into("Conv", 1, 2), func(at []int64) ([]int64, int64, []int64) {
		return []int64{at[0], at[2], at[3]}, at[1], at[:1]
	}},
	{"Conv 1-D", []int64{4, 8, 3}, into("Conv", 1, 2), func(at []int64) ([]int64, int64, []int64) {
		return []int64{at[0], at[2]}, at[1], at[:1]
	}},
	{"ConvTranspose in groups", []int64{10, 3, 2, 2}, into("ConvTranspose", 1, 2, ir.IntAttr("group", 2)),
		func(at []int64) ([]int64, int64, []int64) {
			return []int64{at[0] / 5, at[1], at[2], at[3]}, at[0] % 5, []int64{at[0] / 5, at[1]}
		}},
	{"LSTM W", []int64{2, 8, 6}, into("LSTM", 1, 3, ir.IntAttr("hidden_size", 2)), nk},
	{"GRU R", []int64{1, 15, 5}, into("GRU", 2, 3, ir.IntAttr("hidden_size", 5)), nk},
	{"Gather", []int64{9, 8}, into("Gather", 0, 2), nk},
}

// each calls do for every coordinate of shape, in the order of the payload.
func each(shape []int64, do func(i int, at []int64)) {
	at := make([]int64, len(shape))
	for i := range int(product(shape)) {
		rest := int64(i)
		for d := len(shape) - 1; d >= 0; d-- {
			at[d], rest = rest%shape[d], rest/shape[d]
		}
		do(i, at)
	}
}

// nmFall is the definition of nm: groups of m along the places of one sum, the n largest stay.
func (s axisUse) nmPruned(values []float64, n, m int) []int {
	type member struct {
		index int
		place int64
	}
	groups := map[string][]member{}
	each(s.shape, func(i int, at []int64) {
		sum, place, _ := s.see(at)
		key := fmt.Sprint(sum, place/int64(m))
		groups[key] = append(groups[key], member{i, place})
	})
	var pruned []int
	for _, g := range groups {
		slices.SortFunc(g, func(a, b member) int {
			return cmp.Or(cmp.Compare(math.Abs(values[a.index]), math.Abs(values[b.index])), cmp.Compare(a.place, b.place))
		})
		for _, x := range g[:max(0, len(g)-n)] {
			pruned = append(pruned, x.index)
		}
	}
	return pruned
}

// l2Fall is the definition of l2: the channels of least sum of squares, in payload order.
func (s axisUse) l2Pruned(values []float64, fraction float64) []int {
	norm, members := map[string]float64{}, map[string][]int{}
	var order []string
	each(s.shape, func(i int, at []int64) {
		_, _, channel := s.see(at)
		key := fmt.Sprint(channel)
		if members[key] == nil {
			order = append(order, key)
		}
		norm[key] += values[i] * values[i]
		members[key] = append(members[key], i)
	})
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(norm[a], norm[b]) })
	var pruned []int
	for _, key := range order[:int(math.RoundToEven(fraction*float64(len(order))))] {
		pruned = append(pruned, members[key]...)
	}
	return pruned
}

// zeroed is p with the elements at the indices pruned as +0.
func zeroed(p []byte, dt ir.DType, pruned []int) []byte {
	out := slices.Clone(p)
	size := int(dt.Bits() / 8)
	for _, i := range pruned {
		clear(out[i*size : (i+1)*size])
	}
	return out
}

func TestNMIsItsDefinition(t *testing.T) {
	checkSights(t, func(r *rapid.T, s axisUse, values []float64) ([]int, *pass.Method, []string) {
		m := rapid.IntRange(2, 5).Draw(r, "m")
		n := rapid.IntRange(1, m-1).Draw(r, "n")
		return s.nmPruned(values, n, m), nmMethod, []string{"pattern", fmt.Sprintf("%d:%d", n, m)}
	})
}

func TestL2IsItsDefinition(t *testing.T) {
	checkSights(t, func(r *rapid.T, s axisUse, values []float64) ([]int, *pass.Method, []string) {
		a := drawAmount(r)
		return s.l2Pruned(values, a), l2Method, []string{"amount", text(a)}
	})
}

func checkSights(t *testing.T, definition func(*rapid.T, axisUse, []float64) ([]int, *pass.Method, []string)) {
	for _, s := range axisUses {
		t.Run(s.name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				dt := rapid.SampledFrom(floatTypes).Draw(r, "type")
				b := newBench(t)
				w := b.weight("w", dt, s.shape, drawValues(r, int(product(s.shape)))...)
				s.build(b, w)
				before := b.bytes(w)
				pruned, m, options := definition(r, s, decode(dt, before))
				b.run(m, append(options, "embeddings", "true")...)
				if got, want := b.bytes(w), zeroed(before, dt, pruned); !bytes.Equal(got, want) {
					r.Errorf("got %v, want %v", decode(dt, got), decode(dt, want))
				}
			})
		})
	}
}

// Slabs too large for a view are written one after the other, to the same effect.
func TestNMOfVeryWideMatrices(t *testing.T) {
	const k, n = 5, pass.Block/2 + 3
	values := make([]float64, k*n)
	for i := range values {
		values[i] = float64((i * 7919) % 1009)
	}
	b := newBench(t)
	w := b.weight("w", ir.Float, []int64{k, n}, values...)
	b.node("MatMul", []*ir.Value{nil, w})
	before := b.bytes(w)
	b.run(nmMethod)
	if w.Const.Source.(ir.Output).Of.View != nil {
		t.Fatal("it is a view")
	}
	s := axisUse{shape: []int64{k, n}, see: kn}
	if got, want := b.bytes(w), zeroed(before, ir.Float, s.nmPruned(values, 2, 4)); !bytes.Equal(got, want) {
		t.Error("it differs from its definition")
	}
}

func TestNMReasonCountsPrunedElements(t *testing.T) {
	for _, c := range []struct {
		k    int64
		want string
	}{{8, "pruned: 4 of 8 elements, 2:4 along the axis of 8"}, {5, "pruned: 2 of 5 elements, 2:4 along the axis of 5"},
		{7, "pruned: 3 of 7 elements, 2:4 along the axis of 7"}} {
		b := newBench(t)
		w := b.weight("w", ir.Float, []int64{c.k, 1}, []float64{1, 2, 3, 4, 5, 6, 7, 8}[:c.k]...)
		b.node("MatMul", []*ir.Value{nil, w})
		if r := rowOf(t, b.run(nmMethod), "w"); report.Why(r) != c.want {
			t.Errorf("got %q, want %q", report.Why(r), c.want)
		}
		zeros := 0
		for _, v := range b.values(w) {
			if v == 0 {
				zeros++
			}
		}
		if got := strconv.Itoa(zeros); !strings.HasPrefix(c.want, "pruned: "+got+" ") {
			t.Errorf("K=%d: %d zeros, the row has %q", c.k, zeros, c.want)
		}
	}
}
