package train

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// inputsOf returns the inputs of an update, with random states.
func inputsOf(typ string, hyper *ir.Array) []*ir.Array {
	w, g := values[float32](1, 40, 30), values[float32](2, 40, 30)
	m, v := values[float32](3, 40, 30), values[float32](4, 40, 30)
	for i, x := range ir.View[float32](v) {
		ir.View[float32](v)[i] = x * x
	}
	switch typ {
	case "SGDUpdate":
		return []*ir.Array{w, g, m, hyper}
	case "AdamUpdate":
		return []*ir.Array{w, g, m, v, hyper}
	}
	return []*ir.Array{w, g, quantizedValues(1200), quantizedValues(1200), scales(5), scales(5), hyper}
}

var updateNames = []string{"SGDUpdate", "AdamUpdate", "Adam8Update"}

var momentum = ir.FloatAttr("momentum", 0.9)

func TestNonFiniteFactor(t *testing.T) {
	for _, typ := range updateNames {
		for _, factor := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			in := inputsOf(typ, optest.Array(0.1, 1, float32(factor), 0.1))
			before := clones(in)
			results(t, typ, 1, in, momentum, ir.FloatAttr("max_norm", 0.1))
			same(t, typ, in, before)
		}
	}
}

// A gradient that is not finite changes neither weights nor states, and the sum of squares reports it.
func TestNonFiniteGradient(t *testing.T) {
	for _, typ := range updateNames {
		for _, bad := range []float64{math.NaN(), math.Inf(1), 1e30} {
			in := inputsOf(typ, optest.Array[float32](0.1, 1, 1, 0.1))
			ir.View[float32](in[1])[700] = float32(bad)
			before := clones(in)
			sum := ir.View[float32](results(t, typ, 1, in, momentum, ir.FloatAttr("max_norm", 0.1))[0])[0]
			same(t, typ, in, before)
			if x := float64(sum); !math.IsNaN(x) && !math.IsInf(x, 0) {
				t.Errorf("%s: the sum of squares is %v", typ, sum)
			}
		}
	}
}

// The factor scales the gradients; a power of two is bit-identical.
func TestGradientFactor(t *testing.T) {
	for _, typ := range updateNames {
		in := inputsOf(typ, optest.Array[float32](0.1, 1, 1, 0.1))
		scaled := inputsOf(typ, optest.Array[float32](0.1, 1, 1./1024, 0.1))
		for i, v := range ir.View[float32](scaled[1]) {
			ir.View[float32](scaled[1])[i] = 1024 * v
		}
		want, got := results(t, typ, 1, in, momentum), results(t, typ, 1, scaled, momentum)
		same(t, typ+", sum", got[:1], want[:1])
		same(t, typ+", weights", scaled[:1], in[:1])
		sum := 0.0
		for _, v := range ir.View[float32](in[1]) {
			sum += float64(v) * float64(v)
		}
		near(t, typ, got[0], []float64{sum}, 1, 1e-6)
	}
}

func TestKeepZeros(t *testing.T) {
	for _, typ := range updateNames {
		in := inputsOf(typ, optest.Array[float32](0.1, 1, 1, 0.1))
		w := ir.View[float32](in[0])
		for i := range w {
			if i%3 == 0 {
				w[i] = 0
			}
		}
		before := clones(in)
		results(t, typ, 1, in, momentum, ir.IntAttr("keep_zeros", 1))
		states := statesOf(typ, in)
		for i := range w {
			if pruned := i%3 == 0; pruned != (w[i] == 0) {
				t.Fatalf("%s: weight %d is %v, was %v", typ, i, w[i], ir.View[float32](before[0])[i])
			} else if pruned && (states[0][i] != 0 || states[1][i] != 0) {
				t.Fatalf("%s: weight %d has states %v and %v", typ, i, states[0][i], states[1][i])
			}
		}
	}
}

func statesOf(typ string, in []*ir.Array) [2][]float32 {
	n := int(in[0].Elems())
	buffer := [2][]float32{make([]float32, n), make([]float32, n)}
	var k stateStore = quantizedMoments{books: [2]*codebook{signedBook(), unsignedBook()},
		values: [2][]byte{in[2].Data, in[3].Data}}
	if typ == "Adam8Update" {
		k = quantizedMoments{k.(quantizedMoments).values,
			[2][]float32{ir.View[float32](in[4]), ir.View[float32](in[5])}, k.(quantizedMoments).books}
	} else if k = (plain{ir.View[float32](in[2])}); typ == "AdamUpdate" {
		k = plain{ir.View[float32](in[2]), ir.View[float32](in[3])}
	}
	k.load(0, &buffer)
	return buffer
}

// After an update no unit has a norm above the limit, and units with a smaller norm are unchanged.
func TestMaxNorm(t *testing.T) {
	for axis, count := range []int{40, 30} {
		limit := math.Sqrt(float64(1200 / count)) // the expected length for a normal distribution
		hyper := optest.Array[float32](0.1, 1, 1, 0)
		in, free := inputsOf("SGDUpdate", hyper), inputsOf("SGDUpdate", hyper)
		results(t, "SGDUpdate", 2, in, ir.FloatAttr("max_norm", float32(limit)), ir.IntAttr("norm_axis", int64(axis)-2))
		results(t, "SGDUpdate", 2, free)
		long := 0
		for unit := range count {
			got, want := length(in[0], axis, unit), length(free[0], axis, unit)
			if want > limit {
				long++
				want = limit
			}
			if math.Abs(got-want) > 1e-6*want {
				t.Errorf("axis %d: unit %d has norm %v, want %v", axis, unit, got, want)
			}
		}
		if long == 0 || long == count {
			t.Errorf("axis %d: %d of %d units are above the limit, which tests one case only", axis, long, count)
		}
	}
}

// Blocks of the axes before that of the units have units of their own: a weight in blocks is updated as each block alone.
func TestMaxNormInBlocks(t *testing.T) {
	hyper := optest.Array[float32](0.1, 1, 1, 0)
	attrs := []*ir.Attr{ir.FloatAttr("max_norm", 1), ir.IntAttr("norm_axis", 1)}
	all, g := values[float32](1, 6, 5, 3), values[float32](2, 6, 5, 3)
	before := all.Data
	all.Data = slices.Clone(before)
	results(t, "SGDUpdate", 1, []*ir.Array{all, g, hyper}, append(attrs, ir.IntAttr("norm_blocks", 3))...)
	for i := range 3 {
		part := func(b []byte) *ir.Array {
			return &ir.Array{DType: ir.Float, Shape: []int64{2, 5, 3}, Data: slices.Clone(b[i*120:][:120])}
		}
		one := part(before)
		results(t, "SGDUpdate", 1, []*ir.Array{one, part(g.Data), hyper}, attrs...)
		same(t, "a block", []*ir.Array{part(all.Data)}, []*ir.Array{one})
	}
}

// length returns the norm of a row or column of a matrix.
func length(a *ir.Array, axis, index int) float64 {
	sum := 0.0
	for i, v := range ir.View[float32](a) {
		if at := [2]int{i / int(a.Shape[1]), i % int(a.Shape[1])}; at[axis] == index {
			sum += float64(v) * float64(v)
		}
	}
	return math.Sqrt(sum)
}

func TestClipNonFinite(t *testing.T) {
	hyper := optest.Array[float32](0.1, 3, 0.5, 0.2)
	limit := ir.FloatAttr("max_norm", 1)
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		out := ir.View[float32](results(t, "ClipFactor", 1,
			[]*ir.Array{hyper, optest.Array(float32(bad)), optest.Array[float32](1)}, limit)[0])
		if out[2] == out[2] {
			t.Errorf("the factor is %v, want NaN", out[2])
		}
	}
	small := results(t, "ClipFactor", 1, []*ir.Array{hyper, optest.Array[float32](3)}, limit)
	same(t, "short gradients", small[:1], []*ir.Array{hyper})
	long := results(t, "ClipFactor", 1, []*ir.Array{hyper, optest.Array[float32](10), optest.Array[float32](6)},
		limit)[0]
	near(t, "long gradients", long, []float64{0.1, 3, 0.25, 0.2}, 1, 1e-6)
}

func TestUpdateErrors(t *testing.T) {
	w, hyper := values[float32](1, 2, 2), optest.Array[float32](1, 1, 1, 0)
	u8, one := ir.NewArray(ir.Uint8, 4), ir.NewArray(ir.Float, 1)
	for _, c := range []struct {
		op, want string
		in       []*ir.Array
		attrs    []*ir.Attr
	}{
		{"SGDUpdate", "input G is missing", []*ir.Array{w}, nil},
		{"SGDUpdate", "2 inputs, want", []*ir.Array{w, w}, nil},
		{"SGDUpdate", "input hyper is float[2,2,2]", []*ir.Array{w, w, ir.NewArray(ir.Float, 2, 2, 2)}, nil},
		{"SGDUpdate", "requires the state M", []*ir.Array{w, w, hyper}, []*ir.Attr{momentum}},
		{"SGDUpdate", "nesterov requires momentum", []*ir.Array{w, w, w, hyper}, []*ir.Attr{ir.IntAttr("nesterov", 1)}},
		{"SGDUpdate", "axis 2 is out of range", []*ir.Array{w, w, hyper},
			[]*ir.Attr{ir.FloatAttr("max_norm", 1), ir.IntAttr("norm_axis", 2)}},
		{"SGDUpdate", "attribute norm_blocks is 3", []*ir.Array{w, w, hyper},
			[]*ir.Attr{ir.FloatAttr("max_norm", 1), ir.IntAttr("norm_axis", 1), ir.IntAttr("norm_blocks", 3)}},
		{"SGDUpdate", "attribute max_norm is -1", []*ir.Array{w, w, hyper}, []*ir.Attr{ir.FloatAttr("max_norm", -1)}},
		{"AdamUpdate", "4 inputs, want", []*ir.Array{w, w, w, hyper}, nil},
		{"AdamUpdate", "input V is float[3], want float[2,2]", []*ir.Array{w, w, w, values[float32](1, 3), hyper}, nil},
		{"AdamUpdate", "attribute beta2 is 1", []*ir.Array{w, w, w, w, hyper}, []*ir.Attr{ir.FloatAttr("beta2", 1)}},
		{"Adam8Update", "input M is float[2,2], want uint8", []*ir.Array{w, w, w, u8, one, one, hyper}, nil},
		{"Adam8Update", "input SV is float[2,2], want 1 elements", []*ir.Array{w, w, u8, u8, one, w, hyper}, nil},
		{"AccumulateGrad", "input G is float[4], want float[2,2]", []*ir.Array{w, hyper}, nil},
		{"SumSquares", "no inputs", nil, nil},
		{"ClipFactor", "attribute max_norm is 0", []*ir.Array{hyper, one}, nil},
	} {
		_, err := optest.Run(Ops(), optest.Case{Domain: domain, Type: c.op, Version: 1, In: c.in, Attrs: c.attrs})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.op, err, c.want)
		}
	}
}
