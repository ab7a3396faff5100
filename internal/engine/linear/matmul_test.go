package linear

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// The expected values are numpy.matmul's, for tensors n%7-3.
func TestMatMulBroadcastsAsNumPy(t *testing.T) {
	for _, c := range []struct {
		a, b, shape []int64
		want        []float64
	}{
		{[]int64{3}, []int64{3}, nil, []float64{14}},
		{[]int64{3}, []int64{2, 3, 2}, []int64{2, 2}, []float64{10, 4, -5, 10}},
		{[]int64{2, 2, 3}, []int64{3}, []int64{2, 2}, []float64{14, -4, -1, 2}},
		{[]int64{2, 3}, []int64{2, 3, 1}, []int64{2, 2, 1}, []float64{14, -4, -4, 5}},
		{[]int64{2, 1, 2, 3}, []int64{3, 3, 2}, []int64{2, 3, 2, 2}, []float64{
			10, 4, 1, 4, -5, 10, -2, 1, 1, -5, -5, -2, -8, -10, 4, 4, 15, -8, -3, 4, 17, 15, -3, -3}},
		{[]int64{2, 0}, []int64{0, 3}, []int64{2, 3}, make([]float64, 6)},
		{[]int64{0, 2, 3}, []int64{3, 4}, []int64{0, 2, 4}, nil},
		{[]int64{2, 3}, []int64{3, 0}, []int64{2, 0}, nil},
		{[]int64{1, 3, 0}, []int64{2, 0, 2}, []int64{2, 3, 2}, make([]float64, 12)},
	} {
		for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Int32, ir.Int64} {
			in := []*ir.Array{steps(dt, c.a...), steps(dt, c.b...)}
			want(t, call{op: "MatMul", in: in, workers: 2}, c.shape, c.want, 0)
			want(t, call{op: "MatMul", in: in, consts: []int{1}}, c.shape, c.want, 0)
		}
	}
}

// Integers wrap around, as in NumPy.
func TestMatMulOfIntegersWraps(t *testing.T) {
	a, b := ir.ArrayOf([]int32{1 << 30, 3}, 1, 2), ir.ArrayOf([]int32{4, 5}, 2, 1)
	want(t, call{op: "MatMul", in: []*ir.Array{a, b}}, []int64{1, 1}, []float64{15}, 0)
	c, d := ir.ArrayOf([]uint64{1 << 63, 1}, 1, 2), ir.ArrayOf([]uint64{2, 7}, 2, 1)
	want(t, call{op: "MatMul", in: []*ir.Array{c, d}}, []int64{1, 1}, []float64{7}, 0)
}

func TestFusedMatMulTransposes(t *testing.T) {
	a, b := steps(ir.Float, 3, 2), steps(ir.Float, 4, 3)
	half := []float64{-1, -3.5, -6, 2, -4, -2, -7, 2} // numpy's ½·aᵀ·bᵀ + 2·[-3, -2, -1, 0]
	for i := range half {
		half[i] -= 2 * float64(i%4-3)
	}
	attrs := []*ir.Attr{ir.IntAttr("transA", 1), ir.IntAttr("transB", 1), ir.FloatAttr("alpha", 0.5)}
	want(t, call{domain: microsoft, op: "FusedMatMul", attrs: attrs, in: []*ir.Array{a, b}}, []int64{2, 4}, half, 0)
	perms := []*ir.Attr{ir.IntsAttr("permA", 1, 0), ir.IntsAttr("permB", 1, 0), ir.FloatAttr("alpha", 0.5)}
	want(t, call{domain: "mcompress", op: "MatMul", attrs: perms, in: []*ir.Array{a, b}, consts: []int{1}},
		[]int64{2, 4}, half, 0)
	for _, dt := range []ir.DType{ir.Float, ir.Double} {
		zero := []*ir.Attr{ir.FloatAttr("alpha", 0)}
		in := []*ir.Array{steps(dt, 2, 3), steps(dt, 3, 2)}
		want(t, call{domain: microsoft, op: "FusedMatMul", attrs: zero, in: in}, []int64{2, 2}, make([]float64, 4), 0)
	}
}

// transBatchA moves the first axis before the last: [2,3,4] is 3 matrices of 2 by 4.
func TestFusedMatMulTransposesBatches(t *testing.T) {
	x := steps(ir.Float, 2, 3, 4)
	moved := steps(ir.Float, 3, 2, 4)
	from, to := ir.View[float32](x), ir.View[float32](moved)
	for i := range 2 {
		for j := range 3 {
			copy(to[(j*2+i)*4:][:4], from[(i*3+j)*4:])
		}
	}
	b := steps(ir.Float, 3, 4, 5)
	plain, err := call{op: "MatMul", in: []*ir.Array{moved, b}}.run()
	if err != nil {
		t.Fatal(err)
	}
	got := call{domain: microsoft, op: "FusedMatMul", attrs: []*ir.Attr{ir.IntAttr("transBatchA", 1)},
		in: []*ir.Array{x, b}}
	want(t, got, []int64{3, 2, 5}, values(plain[0]), 0)
}

// 16-bit floats are multiplied as float32, for any strides of B.
func TestHalvesAreWidened(t *testing.T) {
	for name, c := range map[string]struct {
		attrs []*ir.Attr
		b     []int64
	}{
		"rows":    {nil, []int64{2, 300, 50}},
		"columns": {[]*ir.Attr{ir.IntAttr("transB", 1)}, []int64{2, 50, 300}},
		"neither": {[]*ir.Attr{ir.IntsAttr("permB", 2, 1, 0)}, []int64{50, 300, 2}},
		"one":     {nil, []int64{300, 50}},
	} {
		for _, dt := range []ir.DType{ir.Float16, ir.BFloat16} {
			a, b := steps(dt, 2, 40, 300), steps(dt, c.b...)
			wide := call{domain: "mcompress", op: "MatMul", attrs: c.attrs,
				in: []*ir.Array{cast(a, ir.Float), cast(b, ir.Float)}}
			want := values(cast(numbers(ir.Float, []int64{2, 40, 50}, result(t, wide, 0)...), dt))
			near(t, name, result(t, call{domain: "mcompress", op: "MatMul", attrs: c.attrs, in: []*ir.Array{a, b},
				workers: 2}, 0), want, 0)
		}
	}
}

func TestGemm(t *testing.T) {
	bias := []float64{-1, -3.5, -6, 2, -4, -2, -7, 2} // numpy's ½·aᵀ·bᵀ + 2·c
	attrs := []*ir.Attr{ir.IntAttr("transA", 1), ir.IntAttr("transB", 1), ir.FloatAttr("alpha", 0.5),
		ir.FloatAttr("beta", 2)}
	for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16} {
		in := []*ir.Array{steps(dt, 3, 2), steps(dt, 4, 3), steps(dt, 4)}
		want(t, call{op: "Gemm", attrs: attrs, in: in}, []int64{2, 4}, bias, 0)
	}
	for _, dt := range []ir.DType{ir.Int32, ir.Int64} {
		in := []*ir.Array{steps(dt, 2, 3), steps(dt, 3, 2), steps(dt, 2, 1)}
		want(t, call{op: "Gemm", in: in}, []int64{2, 2}, []float64{7, 1, -1, 2}, 0)
	}
}

func TestGemmWithoutOptionalInputs(t *testing.T) {
	five := numbers(ir.Float, []int64{1}, 5)
	for name, c := range map[string]struct {
		terms int64
		alpha float32
	}{"no terms": {0, 1}, "alpha of 0": {3, 0}} {
		t.Run(name, func(t *testing.T) {
			in := []*ir.Array{steps(ir.Float, 2, c.terms), steps(ir.Float, c.terms, 2), five}
			attrs := []*ir.Attr{ir.FloatAttr("alpha", c.alpha)}
			want(t, call{op: "Gemm", attrs: attrs, in: in}, []int64{2, 2}, []float64{5, 5, 5, 5}, 0)
		})
	}
	nan := numbers(ir.Float, []int64{2}, math.NaN(), math.NaN())
	in := []*ir.Array{steps(ir.Float, 2, 3), steps(ir.Float, 3, 2), nan}
	want(t, call{op: "Gemm", attrs: []*ir.Attr{ir.FloatAttr("beta", 0)}, in: in}, []int64{2, 2},
		[]float64{10, 4, 1, 4}, 0)
}

func TestFusedGemmActivates(t *testing.T) {
	in := []*ir.Array{steps(ir.Float, 2, 3), steps(ir.Float, 3, 2), steps(ir.Float, 2, 1)}
	attrs := []*ir.Attr{ir.StringAttr("activation", "LeakyRelu"), ir.FloatAttr("activation_alpha", 0.5)}
	want(t, call{domain: microsoft, op: "FusedGemm", attrs: attrs, in: in}, []int64{2, 2}, []float64{7, 1, -0.5, 2}, 0)
}

func TestFusedMatMulActivates(t *testing.T) {
	in := []*ir.Array{steps(ir.Float, 2, 3), steps(ir.Float, 3, 2)}
	attrs := []*ir.Attr{ir.StringAttr("activation", "LeakyRelu"), ir.FloatAttr("activation_alpha", 0.5),
		ir.FloatAttr("alpha", -1)}
	want(t, call{domain: microsoft, op: "FusedMatMulActivation", attrs: attrs, in: in}, []int64{2, 2},
		[]float64{-5, -2, -0.5, -2}, 0)
}

func TestInvalidProductsAreErrors(t *testing.T) {
	x := steps(ir.Float, 2, 3)
	for name, c := range map[string]call{
		"inner sizes": {op: "MatMul", in: []*ir.Array{x, x}},
		"types":       {op: "MatMul", in: []*ir.Array{x, steps(ir.Double, 3, 2)}},
		"scalar":      {op: "MatMul", in: []*ir.Array{x, steps(ir.Float)}},
		"batches":     {op: "MatMul", in: []*ir.Array{steps(ir.Float, 2, 1, 3), steps(ir.Float, 3, 3, 1)}},
		"missing":     {op: "MatMul", in: []*ir.Array{x, nil}},
		"bias":        {op: "Gemm", in: []*ir.Array{x, steps(ir.Float, 3, 2), steps(ir.Float, 3)}},
		"rank":        {op: "Gemm", in: []*ir.Array{x, steps(ir.Float, 1, 3, 2)}},
		"order": {domain: "mcompress", op: "MatMul", attrs: []*ir.Attr{ir.IntsAttr("permA", 0, 0)},
			in: []*ir.Array{x, x}},
		"activation": {domain: microsoft, op: "FusedGemm", attrs: []*ir.Attr{ir.StringAttr("activation", "Foo")},
			in: []*ir.Array{x, steps(ir.Float, 3, 2)}},
		"negative":     {op: "MatMul", in: []*ir.Array{{DType: ir.Float, Shape: []int64{-1, 3}}, x}},
		"not a number": {op: "MatMul", in: []*ir.Array{steps(ir.Int8, 2, 3), steps(ir.Int8, 3, 2)}},
	} {
		if _, err := c.run(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
