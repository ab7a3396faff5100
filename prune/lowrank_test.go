package prune

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// decaying are values of a matrix whose singular values decrease as trained ones do.
func decaying(rows, cols int) []float64 {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	x := make([]float64, rows*cols)
	for k := range min(rows, cols) {
		scale := 1 / float64(1+k*k)
		u, v := make([]float64, rows), make([]float64, cols)
		for i := range u {
			u[i] = r.NormFloat64() * scale
		}
		for j := range v {
			v[j] = r.NormFloat64()
		}
		for i := range x {
			x[i] += u[i/cols] * v[i%cols]
		}
	}
	return x
}

// factoredModel holds one weight of the given use.
func factoredModel(t *testing.T, op string, left bool, dt ir.DType, shape []int64,
	attrs ...*ir.Attr) (*bench, *ir.Value) {
	b := newBench(t)
	cols := product(shape[1:])
	w := b.weight("w", dt, shape, decaying(int(shape[0]), int(cols))...)
	in := []*ir.Value{nil, w}
	if left {
		in = []*ir.Value{w, nil}
	}
	b.g.AddOutput(b.node(op, in, attrs...))
	return b, w
}

var factoredUses = []struct {
	name  string
	op    string
	left  bool
	dt    ir.DType
	shape []int64
	attrs []*ir.Attr
}{
	{"MatMul", "MatMul", false, ir.Float, []int64{40, 30}, nil},
	{"MatMul of doubles", "MatMul", false, ir.Double, []int64{30, 40}, nil},
	{"MatMul from the left", "MatMul", true, ir.Float, []int64{40, 30}, nil},
	{"Gemm", "Gemm", false, ir.Float, []int64{30, 40}, nil},
	{"Gemm, stored transposed", "Gemm", false, ir.Float, []int64{30, 50}, []*ir.Attr{ir.IntAttr("transB", 1)}},
	{"Conv", "Conv", false, ir.Float, []int64{24, 6, 3, 3}, nil},
	{"Conv of 1×1", "Conv", false, ir.Float, []int64{40, 24, 1, 1}, nil},
}

// The factors are the best of their rank: what they miss is what the singular values that
// were dropped hold (Eckart & Young). gonum's decomposition is the reference.
func TestFactorsMissWhatWasDropped(t *testing.T) {
	for _, u := range factoredUses {
		t.Run(u.name, func(t *testing.T) {
			b, w := factoredModel(t, u.op, u.left, u.dt, u.shape, u.attrs...)
			before := b.values(w)
			row := rowOf(t, b.run(lowRankMethod, "rank", "5"), "w")
			if row.Status != pass.Changed {
				t.Fatal(report.Why(row))
			}
			restored := row.Restore([]*ir.Tensor{row.After[0].Tensor, row.After[1].Tensor})
			after := decode(u.dt, read(t, b, restored))
			missed := 0.0
			for i := range before {
				missed += (before[i] - after[i]) * (before[i] - after[i])
			}
			rows := int(u.shape[0])
			var svd mat.SVD
			if !svd.Factorize(mat.NewDense(rows, len(before)/rows, before), mat.SVDNone) {
				t.Fatal("gonum found no decomposition")
			}
			dropped, all := 0.0, 0.0
			for i, s := range svd.Values(nil) {
				all += s * s
				if i >= 5 {
					dropped += s * s
				}
			}
			if got, want := math.Sqrt(missed), math.Sqrt(dropped); math.Abs(got-want) > 1e-6*math.Sqrt(all) {
				t.Errorf("error %v, want %v of %v", got, want, math.Sqrt(all))
			}
		})
	}
}

func read(t *testing.T, b *bench, x *ir.Tensor) []byte {
	t.Helper()
	p, err := b.step.Eval.ReadAll(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The constants of factors have their types, also where the weight has one.
func TestTypesOfFactors(t *testing.T) {
	for _, use := range factoredUses {
		b, w := factoredModel(t, use.op, use.left, use.dt, use.shape, use.attrs...)
		w.Type = typeOf(w.Const)
		if row := rowOf(t, b.run(lowRankMethod, "rank", "2"), "w"); row.Status != pass.Changed {
			t.Errorf("%s: %s", use.name, row.Status)
		}
		for _, v := range b.g.Consts() {
			if v.Type != nil && fmt.Sprint(*v.Type) != fmt.Sprint(*typeOf(v.Const)) {
				t.Errorf("%s: type %v of %s, which is %v", use.name, *v.Type, v.Name, v.Const.Spec)
			}
		}
	}
}

// Factors of weights near the limit of their type may exceed it: such weights are skipped.
func TestFactorsAreFinite(t *testing.T) {
	for dt, most := range map[ir.DType]float64{ir.Float: math.MaxFloat32, ir.Float16: 65504, ir.BFloat16: 0x1.fep127,
		ir.Double: math.MaxFloat64} {
		t.Run(dt.String(), func(t *testing.T) {
			b, w := factoredModel(t, "MatMul", false, dt, []int64{40, 30})
			values := make([]float64, 40*30)
			for i := range values {
				values[i] = most
			}
			w.Const.Source = ir.Mem(encode(dt, values))
			before := b.bytes(w)
			row := rowOf(t, b.run(lowRankMethod, "rank", "2"), "w")
			if row.Status != pass.Skipped || row.Reason.None() {
				t.Errorf("status %s, reason %q", row.Status, row.Reason.Code)
			}
			if !bytes.Equal(before, b.bytes(w)) {
				t.Error("the weight is changed")
			}
		})
	}
}

// The rank is the least that keeps the energy, or the one that removes the fraction.
func TestRankFollowsFromOptions(t *testing.T) {
	singular := []float64{8, 4, 2, 1}
	values := make([]float64, 40*40)
	total := 0.0
	for i, s := range singular {
		values[i*40+i] = s
		total += s * s
	}
	for _, c := range []struct {
		options []string
		rank    string
	}{
		{[]string{"energy", "0.75"}, "rank 1 "},
		{[]string{"energy", "0.94"}, "rank 2 "},
		{[]string{"energy", "0.95"}, "rank 3 "}, // 8² + 4² of 85 is 0.941
		{[]string{"energy", "1"}, "rank 4 "},
		{[]string{"amount", "0.5"}, "rank 10 "}, // 0.5 · 1600 / 80
		{[]string{"rank", "7"}, "rank 7 "},
	} {
		b := newBench(t)
		w := b.weight("w", ir.Float, []int64{40, 40}, values...)
		b.g.AddOutput(b.node("MatMul", []*ir.Value{nil, w}))
		if row := rowOf(t, b.run(lowRankMethod, c.options...), "w"); row.Status != pass.Changed ||
			!strings.HasPrefix(row.Notes[0].Detail, c.rank) {
			t.Errorf("%v: %v %s, want %s", c.options, row.Status, report.Why(row), c.rank)
		}
	}
}

func TestReasonsOfWeightsThatAreNotFactored(t *testing.T) {
	for _, c := range []struct {
		reason  string
		options []string
		model   func(b *bench) *ir.Value
	}{
		{"would become larger: rank 39 of 40, two factors of a 40×40 matrix are smaller up to rank 19",
			[]string{"rank", "39"}, func(b *bench) *ir.Value {
				return b.node("MatMul", []*ir.Value{nil, b.weight("w", ir.Float, []int64{40, 40}, decaying(40, 40)...)})
			}},
		{"would become larger: two factors of a 2×3 matrix at any rank", nil, func(b *bench) *ir.Value {
			return b.node("MatMul", []*ir.Value{nil, b.weight("w", ir.Float, []int64{2, 3}, 1, 2, 3, 4, 5, 6)})
		}},
		{"several consumers: 2", nil, func(b *bench) *ir.Value {
			w := b.weight("w", ir.Float, []int64{40, 40}, decaying(40, 40)...)
			return b.node("MatMul", []*ir.Value{b.node("MatMul", []*ir.Value{nil, w}), w})
		}},
		{"values not finite: NaN or infinities", nil, func(b *bench) *ir.Value {
			x := decaying(40, 40)
			x[77] = math.NaN()
			return b.node("MatMul", []*ir.Value{nil, b.weight("w", ir.Float, []int64{40, 40}, x...)})
		}},
		{"not supported: weight of Conv: 2 groups", nil, func(b *bench) *ir.Value {
			w := b.weight("w", ir.Float, []int64{40, 20, 1, 1}, decaying(40, 20)...)
			return b.node("Conv", []*ir.Value{nil, w}, ir.IntAttr("group", 2))
		}},
	} {
		b := newBench(t)
		b.g.AddOutput(c.model(b))
		if row := rowOf(t, b.run(lowRankMethod, c.options...), "w"); row.Status != pass.Skipped ||
			report.Why(row) != c.reason {
			t.Errorf("%v %q, want %q", row.Status, report.Why(row), c.reason)
		}
	}
}

// Two products are the factors of a larger matrix if they are smaller than it.
func TestRankBetweenProducts(t *testing.T) {
	for _, c := range []struct{ in, middle, out, want int64 }{{in: 4, middle: 2, out: 4}, {in: 3, middle: 2, out: 6},
		{3, 2, 7, 2}, {5, 2, 5, 2}, {9, 1, 2, 1}, {in: 2, middle: 1, out: 2}} {
		b := newBench(t)
		first := b.node("MatMul", []*ir.Value{nil, b.weight("a", ir.Float, []int64{c.in, c.middle},
			make([]float64, c.in*c.middle)...)})
		second := b.node("MatMul", []*ir.Value{first, b.weight("b", ir.Float, []int64{c.middle, c.out},
			make([]float64, c.middle*c.out)...)})
		b.g.AddOutput(second)
		if got := rankBetween(first.Producer(), second.Producer()); got != c.want {
			t.Errorf("%d to %d to %d: rank %d, want %d", c.in, c.middle, c.out, got, c.want)
		}
	}
}

// Factors are not factored again.
func TestFactorsStay(t *testing.T) {
	for _, u := range factoredUses {
		b, _ := factoredModel(t, u.op, u.left, u.dt, u.shape, u.attrs...)
		first := b.run(lowRankMethod, "rank", "8")
		for _, row := range b.run(lowRankMethod, "rank", "2")[len(first):] {
			if row.Status != pass.Skipped || row.Reason != (pass.Reason{Code: pass.AlreadyFactored, Detail: "rank 8"}) {
				t.Errorf("%s: %s: %v %s", u.name, row.Tensor, row.Status, report.Why(row))
			}
		}
	}
}

func TestRankAndEnergyExcludeOneAnother(t *testing.T) {
	if _, err := newBench(t).try(lowRankMethod, "rank", "3", "energy", "0.5"); err == nil {
		t.Error("both were taken")
	}
}
