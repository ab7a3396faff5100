package linear

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func equationAttr(s string) []*ir.Attr { return []*ir.Attr{ir.StringAttr("equation", s)} }

// The expected values are numpy.einsum's, for tensors n%7-3.
func TestEinsum(t *testing.T) {
	for _, c := range []struct {
		equation string
		in       [][]int64
		shape    []int64
		want     []float64
	}{
		{"ij,jk->ik", [][]int64{{2, 3}, {3, 2}}, []int64{2, 2}, []float64{10, 4, 1, 4}},
		{"ij , jk", [][]int64{{2, 3}, {3, 2}}, []int64{2, 2}, []float64{10, 4, 1, 4}},
		{"ba", [][]int64{{2, 3}}, []int64{3, 2}, []float64{-3, 0, -2, 1, -1, 2}},
		{"ii->i", [][]int64{{3, 3}}, []int64{3}, []float64{-3, 1, -2}},
		{"ii", [][]int64{{3, 3}}, nil, []float64{-4}},
		{"ij->", [][]int64{{2, 3}}, nil, []float64{-3}},
		{"i,j->ji", [][]int64{{2}, {3}}, []int64{3, 2}, []float64{9, 6, 6, 4, 3, 2}},
		{"...ij,...jk->...ik", [][]int64{{2, 2, 3}, {3, 1}}, []int64{2, 2, 1}, []float64{14, -4, -1, 2}},
		{"...ij,jk", [][]int64{{2, 2, 3}, {3, 1}}, []int64{2, 2, 1}, []float64{14, -4, -1, 2}},
		{"i...->...", [][]int64{{2, 3}}, []int64{3}, []float64{-3, -1, 1}},
		{"ij,jk,kl->li", [][]int64{{2, 3}, {3, 2}, {2, 2}}, []int64{2, 2}, []float64{-34, -7, -20, -2}},
		{"i,i->", [][]int64{{0}, {0}}, nil, []float64{0}},
		{"ij,jk->ik", [][]int64{{2, 0}, {0, 2}}, []int64{2, 2}, make([]float64, 4)},
		{"bhwc,hkc->bhwk", [][]int64{{1, 2, 2, 2}, {2, 1, 2}}, []int64{1, 2, 2, 1}, []float64{13, 3, -1, -3}},
	} {
		for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Int8, ir.Int16, ir.Int32,
			ir.Int64} {
			var in []*ir.Array
			for _, shape := range c.in {
				in = append(in, steps(dt, shape...))
			}
			t.Run(c.equation, func(t *testing.T) {
				want(t, call{op: "Einsum", attrs: equationAttr(c.equation), in: in, workers: 2}, c.shape, c.want, 0)
			})
		}
	}
}

func TestEinsumOfIntegersWraps(t *testing.T) {
	x := ir.ArrayOf([]uint8{200, 100}, 2)
	want(t, call{op: "Einsum", attrs: equationAttr("i->"), in: []*ir.Array{x}}, nil, []float64{44}, 0)
}

// byDefinition sums the products of all operands over all labels of the equation.
func byDefinition(e *equation, sizes map[label]int64, in []*ir.Array) []float64 {
	var all []label
	for l := range sizes {
		all = append(all, l)
	}
	at := map[label]int64{}
	place := func(labels []label) (i int64) {
		for _, l := range labels {
			i = i*sizes[l] + at[l]
		}
		return i
	}
	size := int64(1)
	for _, l := range e.out {
		size *= sizes[l]
	}
	out, data := make([]float64, size), [][]float64{}
	for _, a := range in {
		data = append(data, values(a))
	}
	var visit func(k int)
	visit = func(k int) {
		if k < len(all) {
			for at[all[k]] = 0; at[all[k]] < sizes[all[k]]; at[all[k]]++ {
				visit(k + 1)
			}
			return
		}
		x := 1.0
		for i, t := range e.terms {
			x *= data[i][place(t)]
		}
		out[place(e.out)] += x
	}
	visit(0)
	return out
}

// Larger ones use package gemm, with copies of operands that have no single stride.
func TestEinsumEqualsTheDefinition(t *testing.T) {
	sizes := map[rune]int64{'a': 3, 'b': 4, 'i': 20, 'j': 30, 'k': 7, 'x': 5, 'y': 2}
	for _, text := range []string{
		"bij,bjk->bik", "bij,bjk->kbi", "bijx,bxjk->bik", "ixjy,jykx->ki", "aij,bji->ab", "ij,jk,kb->bi", "ij,j->i",
		"iij,jk->ik", "ij,xk->jk", "ax,by,xy->ab",
	} {
		var shapes [][]int64
		var ranks []int
		left, _, _ := strings.Cut(text, "->")
		for _, term := range strings.Split(left, ",") {
			var shape []int64
			for _, r := range term {
				shape = append(shape, sizes[r])
			}
			shapes, ranks = append(shapes, shape), append(ranks, len(shape))
		}
		e, err := parseEquation(text, ranks)
		if err != nil {
			t.Fatal(err)
		}
		for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Int32} {
			used, in := map[label]int64{}, []*ir.Array{}
			for i, shape := range shapes {
				in = append(in, steps(dt, shape...))
				for axis, l := range e.terms[i] {
					used[l] = shape[axis]
				}
			}
			var shape []int64
			for _, l := range e.out {
				shape = append(shape, used[l])
			}
			want(t, call{op: "Einsum", attrs: equationAttr(text), in: in, workers: 3}, shape,
				byDefinition(e, used, in), 0)
		}
	}
}

func TestInvalidEquations(t *testing.T) {
	for _, text := range []string{"ij", "ij,jk,kl", "i?,jk", "ij,jk->ii", "ij,jk->x", "ij,jk->i.k", "i,jk", "...,jkl",
		"ij,kj[->ik", "i..j,jk"} {
		if e, err := parseEquation(text, []int{2, 2}); err == nil {
			t.Errorf("%q is accepted as %v", text, e)
		}
	}
	in := []*ir.Array{steps(ir.Float, 2, 3), steps(ir.Float, 4, 2)}
	if _, err := (call{op: "Einsum", attrs: equationAttr("ij,jk"), in: in}).run(); err == nil {
		t.Error("sizes 3 and 4 are accepted for one label")
	}
	large := []*ir.Array{{DType: ir.Float, Shape: []int64{1 << 40}}, {DType: ir.Float, Shape: []int64{1 << 40}}}
	if _, err := (call{op: "Einsum", attrs: equationAttr("i,j"), in: large}).run(); err == nil {
		t.Error("a result of 2^80 elements is accepted")
	}
}

func TestImplicitResultsAreSortedByASCII(t *testing.T) {
	e, err := parseEquation("bA...,cb", []int{4, 2})
	if err != nil || !slices.Equal(e.out, []label{ellipsis, ellipsis + 1, 'A', 'c'}) {
		t.Errorf("got %v, %v", e, err)
	}
}
