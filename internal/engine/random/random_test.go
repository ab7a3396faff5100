package random

import (
	"bytes"
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// run runs the node the given number of times.
func run(t *testing.T, typ string, workers, runs int, attrs []*ir.Attr, in ...*ir.Array) []*ir.Array {
	t.Helper()
	pool := op.NewPool(workers)
	defer pool.Close()
	for _, row := range Ops() {
		if row.Type != typ {
			continue
		}
		n := op.NewNode(ir.OpID{Type: typ}, 22, attrs, nil)
		n.Consumed, n.Seed = []bool{true}, 7
		prepared, err := row.Prepare(n, in, pool)
		if err != nil {
			t.Fatal(err)
		}
		n.State = prepared.State
		specs, err := row.Shape(n, in)
		if err != nil {
			t.Fatal(err)
		}
		var outs []*ir.Array
		for range runs {
			out := ir.NewArray(specs[0].DType, specs[0].Shape...)
			if err := row.Run(&op.Call{Node: n, In: in, Out: []*ir.Array{out}, Pool: pool}); err != nil {
				t.Fatal(err)
			}
			outs = append(outs, out)
		}
		return outs
	}
	t.Fatalf("no row for %s", typ)
	return nil
}

func shape(dims ...int64) *ir.Attr { return &ir.Attr{Name: "shape", Type: ir.AttrInts, Ints: dims} }

func TestNumbersDoNotDependOnWorkers(t *testing.T) {
	one, many := run(t, "RandomNormal", 1, 1, []*ir.Attr{shape(3, 5000)}),
		run(t, "RandomNormal", 4, 1, []*ir.Attr{shape(3, 5000)})
	if !bytes.Equal(one[0].Data, many[0].Data) {
		t.Error("1 and 4 workers drew different numbers")
	}
}

func TestRunsDiffer(t *testing.T) {
	outs := run(t, "RandomUniform", 1, 2, []*ir.Attr{shape(10)})
	if bytes.Equal(outs[0].Data, outs[1].Data) {
		t.Error("two runs drew the same numbers")
	}
}

// The mean of n samples has standard error sd/√n; six times that is exceeded by one seed in 10^9.
func TestMeans(t *testing.T) {
	const n = 40000
	for _, c := range []struct {
		typ      string
		attrs    []*ir.Attr
		mean, sd float64
		in       []*ir.Array
	}{
		{"RandomNormal", []*ir.Attr{{Name: "mean", F: 3}, {Name: "scale", F: 2}, shape(n)}, 3, 2, nil},
		{"RandomNormalLike", []*ir.Attr{{Name: "mean", F: 3}, {Name: "scale", F: 2}}, 3, 2,
			[]*ir.Array{ir.NewArray(ir.Float, n)}},
		{"RandomUniform", []*ir.Attr{{Name: "low", F: -1}, {Name: "high", F: 5}, shape(n)}, 2, 6 / math.Sqrt(12), nil},
		{"RandomUniformLike", []*ir.Attr{{Name: "low", F: -1}, {Name: "high", F: 5}}, 2, 6 / math.Sqrt(12),
			[]*ir.Array{ir.NewArray(ir.Float, n)}},
	} {
		out := run(t, c.typ, 2, 1, c.attrs, c.in...)[0]
		sum, squares := 0.0, 0.0
		for _, x := range ir.View[float32](out) {
			sum += float64(x)
			squares += (float64(x) - c.mean) * (float64(x) - c.mean)
		}
		if got := sum / n; math.Abs(got-c.mean) > 6*c.sd/math.Sqrt(n) {
			t.Errorf("%s: mean %v, want %v", c.typ, got, c.mean)
		}
		if got := math.Sqrt(squares / n); math.Abs(got-c.sd) > 0.05*c.sd {
			t.Errorf("%s: deviation %v, want %v", c.typ, got, c.sd)
		}
	}
}

func TestBernoulliIsSureAtTheEnds(t *testing.T) {
	out := run(t, "Bernoulli", 1, 1, []*ir.Attr{{Name: "dtype", I: int64(ir.Bool)}},
		ir.ArrayOf([]float32{0, 1, 0, 1}, 4))[0]
	if !bytes.Equal(out.Data, []byte{0, 1, 0, 1}) {
		t.Errorf("got %v", out.Data)
	}
}

func TestMultinomialDrawsByWeight(t *testing.T) {
	const n = 40000
	in := ir.ArrayOf([]float32{0, float32(math.Log(3)), float32(math.Inf(-1))}, 1, 3)
	out := run(t, "Multinomial", 1, 1, []*ir.Attr{{Name: "sample_size", I: n}}, in)[0]
	var hits [3]float64
	for _, class := range ir.View[int32](out) {
		hits[class]++
	}
	if hits[2] != 0 || math.Abs(hits[1]-0.75*n) > 6*math.Sqrt(n*0.75*0.25) {
		t.Errorf("drawn %v times, want %v of the second and none of the third", hits, 0.75*n)
	}
}

func TestBadRequestsAreErrors(t *testing.T) {
	for _, c := range []struct {
		typ   string
		attrs []*ir.Attr
		in    []*ir.Array
	}{
		{"RandomNormal", nil, nil},
		{"RandomNormal", []*ir.Attr{shape(-1)}, nil},
		{"RandomNormal", []*ir.Attr{shape(2), {Name: "dtype", I: int64(ir.Int8)}}, nil},
		{"RandomUniformLike", nil, []*ir.Array{nil}},
		{"RandomUniformLike", nil, []*ir.Array{ir.ArrayOf([]int32{1}, 1)}},
		{"Bernoulli", nil, []*ir.Array{{Kind: ir.Sequence}}},
		{"Multinomial", nil, []*ir.Array{ir.ArrayOf([]float32{}, 1, 0)}},
		{"Multinomial", []*ir.Attr{{Name: "sample_size", I: -1}}, []*ir.Array{ir.ArrayOf([]float32{1}, 1, 1)}},
	} {
		for _, row := range Ops() {
			if row.Type != c.typ {
				continue
			}
			if specs, err := row.Shape(op.NewNode(ir.OpID{Type: c.typ}, 22, c.attrs, nil), c.in); err == nil {
				t.Errorf("%s gives %v", c.typ, specs)
			}
		}
	}
}
