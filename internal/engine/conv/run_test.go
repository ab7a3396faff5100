package conv

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

type attrs = optest.Attrs

// rowOf is the operator's row at a version, of the newest domain that has it.
func rowOf(name string, version int64) *op.Op {
	var best *op.Op
	for _, o := range Ops() {
		if o.Type == name && o.Since <= version && (best == nil || o.Since > best.Since) {
			best = &o
		}
	}
	return best
}

// run runs a node. The inputs in constant are passed to Prepare.
func run(row *op.Op, version int64, a attrs, workers, outputs int, in []*ir.Array, constant ...int) ([]*ir.Array,
	error) {
	return optest.RunRow(row, optest.Case{
		Domain: row.Domain, Type: row.Type, Version: version, In: in, Attrs: a.List(), Consts: constant,
		Outputs: outputs, Workers: workers,
	})
}

// prepared is must with input 1 constant.
func prepared(t *testing.T, name string, version int64, a attrs, in ...*ir.Array) *ir.Array {
	t.Helper()
	row := rowOf(name, version)
	var first *ir.Array
	for _, workers := range []int{1, 2, 9} {
		out, err := run(row, version, a, workers, 1, in, 1)
		if err != nil {
			t.Fatalf("%s %v of %v: %v", name, a, in, err)
		}
		if first != nil && !bytes.Equal(out[0].Data, first.Data) {
			t.Fatalf("%s %v of %v: not bit-identical with %d workers", name, a, in, workers)
		}
		first = out[0]
	}
	return first
}

// garbageArray is an array whose memory is not cleared.
func garbageArray(s ir.Spec) *ir.Array {
	a := ir.NewArray(s.DType, s.Shape...)
	for i := range a.Data {
		a.Data[i] = 0xa5
	}
	return a
}

// must runs a node with one worker and with three, which must be bit-identical.
func must(t *testing.T, name string, version int64, a attrs, in ...*ir.Array) *ir.Array {
	t.Helper()
	row := rowOf(name, version)
	one, err := run(row, version, a, 1, 1, in)
	if err != nil {
		t.Fatalf("%s %v of %v: %v", name, a, in, err)
	}
	three, err := run(row, version, a, 3, 1, in)
	if err != nil || !bytes.Equal(one[0].Data, three[0].Data) {
		t.Fatalf("%s %v of %v: not bit-identical with three workers, %v", name, a, in, err)
	}
	return one[0]
}

func random(seed uint64, shape ...int64) *ir.Array {
	r := rand.New(rand.NewPCG(seed, 0))
	a := ir.NewArray(ir.Float, shape...)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(r.NormFloat64())
	}
	return a
}

// as is a converted to another float type.
func as(dt ir.DType, a *ir.Array) *ir.Array {
	x := ir.View[float32](a)
	to := ir.NewArray(dt, a.Shape...)
	switch dt {
	case ir.Float:
		return a
	case ir.Double:
		for i, v := range x {
			ir.View[float64](to)[i] = float64(v)
		}
	default:
		narrow(to, x)
	}
	return to
}

// wideOf are a's elements as float64.
func wideOf(a *ir.Array) []float64 {
	x := make([]float64, a.Elems())
	switch a.DType {
	case ir.Double:
		copy(x, ir.View[float64](a))
	case ir.Float:
		for i, v := range ir.View[float32](a) {
			x[i] = float64(v)
		}
	default:
		wide := make([]float32, len(x))
		widen(wide, a)
		for i, v := range wide {
			x[i] = float64(v)
		}
	}
	return x
}

// near compares with a tolerance that is relative to the largest element.
func near(t *testing.T, what string, got *ir.Array, want []float64, tolerance float64) {
	t.Helper()
	x := wideOf(got)
	if len(x) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(x), len(want))
	}
	top := 1.0
	for _, v := range want {
		top = max(top, math.Abs(v))
	}
	for i := range want {
		if !(math.Abs(x[i]-want[i]) <= tolerance*top) {
			t.Fatalf("%s: element %d of %s is %v, want %v", what, i, got, x[i], want[i])
		}
	}
}

func nodeOf(name string, a attrs) *op.Node {
	return op.NewNode(ir.OpID{Type: name}, 22, a.List(), nil)
}
