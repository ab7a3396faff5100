package conv

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// attrs are a node's attributes: int, []int, float64 or string.
type attrs map[string]any

func (a attrs) list() []*ir.Attr {
	var list []*ir.Attr
	for name, v := range a {
		attr := &ir.Attr{Name: name}
		switch v := v.(type) {
		case int:
			attr.Type, attr.I = ir.AttrInt, int64(v)
		case []int:
			attr.Type, attr.Ints = ir.AttrInts, long(v)
		case float64:
			attr.Type, attr.F = ir.AttrFloat, float32(v)
		case []float32:
			attr.Type, attr.Floats = ir.AttrFloats, v
		case string:
			attr.Type, attr.S = ir.AttrString, v
		}
		list = append(list, attr)
	}
	return list
}

func long(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

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

// run runs a node with that many workers, like an engine. The inputs in constant are passed to Prepare.
func run(row *op.Op, version int64, a attrs, workers, outputs int, in []*ir.Array, constant ...int) ([]*ir.Array, error) {
	pool := op.NewPool(workers)
	defer pool.Close()
	n := op.NewNode(ir.OpID{Domain: row.Domain, Type: row.Type}, version, a.list(), nil)
	n.NumIn, n.Consumed = len(in), make([]bool, outputs)
	for i := range n.Consumed {
		n.Consumed[i] = true
	}
	in, err := prepare(row, n, in, pool, constant)
	if err != nil {
		return nil, err
	}
	specs, err := row.Shape(n, in)
	if err != nil {
		return nil, err
	}
	c := &op.Call{Node: n, Ctx: context.Background(), In: in, Pool: pool}
	for _, s := range specs[:outputs] {
		c.Out = append(c.Out, garbageArray(s))
	}
	if row.Work != nil {
		c.Work = ir.AlignedBytes(row.Work(n, in, workers))
	}
	return c.Out, row.Run(c)
}

// prepare removes the data of prepared inputs, like an engine.
func prepare(row *op.Op, n *op.Node, in []*ir.Array, pool *op.Pool, constant []int) ([]*ir.Array, error) {
	in = append([]*ir.Array(nil), in...)
	if row.Prepare == nil || len(constant) == 0 {
		return in, nil
	}
	given := make([]*ir.Array, len(in))
	n.Const = make([]bool, len(in))
	for _, i := range constant {
		given[i], n.Const[i] = in[i], true
	}
	p, err := row.Prepare(n, given, pool)
	if err != nil || p == nil {
		return in, err
	}
	n.State = p.State
	for _, i := range p.Drops {
		in[i] = &ir.Array{DType: in[i].DType, Shape: in[i].Shape}
	}
	return in, nil
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
	return op.NewNode(ir.OpID{Type: name}, 22, a.list(), nil)
}

// runInto runs a node on memory that already holds its output.
func runInto(row *op.Op, a attrs, in []*ir.Array, out *ir.Array) error {
	pool := op.NewPool(2)
	defer pool.Close()
	n := nodeOf(row.Type, a)
	c := &op.Call{Node: n, In: in, Out: []*ir.Array{out}, Pool: pool}
	c.Work = ir.AlignedBytes(row.Work(n, in, 2))
	return row.Run(c)
}
