package linear

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A call is one operator with its inputs.
type call struct {
	domain, op string
	attrs      []*ir.Attr
	in         []*ir.Array
	consts     []int // inputs that are constants
	outputs    int   // 1 if it is 0
	workers    int
}

// run runs the newest version of a call's operator, with scratch memory and outputs that hold NaN.
func (c call) run() ([]*ir.Array, error) {
	i := slices.IndexFunc(Ops(), func(o op.Op) bool { return o.Domain == c.domain && o.Type == c.op })
	if i < 0 {
		return nil, fmt.Errorf("no operator %s.%s", c.domain, c.op)
	}
	row := Ops()[i]
	n := op.NewNode(ir.OpID{Domain: c.domain, Type: c.op}, 1000, c.attrs, nil)
	n.NumIn, n.Consumed, n.Const = len(c.in), slices.Repeat([]bool{true}, max(c.outputs, 1)), make([]bool, len(c.in))
	pool := op.NewPool(max(c.workers, 1))
	defer pool.Close()
	specs, err := row.Shape(n, c.in)
	if err != nil {
		return nil, err
	}
	call := &op.Call{Node: n, In: slices.Clone(c.in), Out: make([]*ir.Array, n.NumOut()), Pool: pool}
	for i := range call.Out {
		call.Out[i] = ir.NewArray(specs[i].DType, specs[i].Shape...)
		spoil(call.Out[i].Data)
	}
	if len(c.consts) > 0 {
		known := make([]*ir.Array, len(c.in))
		for _, i := range c.consts {
			n.Const[i], known[i] = true, c.in[i]
		}
		made, err := row.Prepare(n, known, pool)
		if err != nil {
			return nil, err
		}
		if made != nil {
			n.State = made.State
			for _, i := range made.Drops { // must not be read any more
				call.In[i] = &ir.Array{DType: c.in[i].DType, Shape: c.in[i].Shape}
			}
		}
	}
	if row.Work != nil {
		call.Work = ir.AlignedBytes(row.Work(n, c.in, pool.Workers()))
		spoil(call.Work)
	}
	return call.Out, row.Run(call)
}

func spoil(b []byte) {
	for i := range b {
		b[i] = 0xFF
	}
}

// numbers is a tensor of any numeric type.
func numbers(dt ir.DType, shape []int64, x ...float64) *ir.Array {
	a := ir.NewArray(dt, shape...)
	number.Write(a, 0, x)
	return a
}

// steps is the tensor of n%7-3 for n = 0, 1, 2, …
func steps(dt ir.DType, shape ...int64) *ir.Array {
	x := make([]float64, op.Product(shape))
	for i := range x {
		x[i] = float64(i%7 - 3)
	}
	return numbers(dt, shape, x...)
}

func values(a *ir.Array) []float64 {
	x := make([]float64, a.Elems())
	number.Read(x, a, 0)
	return x
}

// want runs c and compares its first output.
func want(t *testing.T, c call, shape []int64, x []float64, within float64) {
	t.Helper()
	out, err := c.run()
	if err != nil {
		t.Fatal(err)
	}
	got := values(out[0])
	if !slices.Equal(out[0].Shape, shape) || len(got) != len(x) {
		t.Fatalf("got %s, want shape %v", out[0], shape)
	}
	for i := range x {
		if !(math.Abs(got[i]-x[i]) <= within*max(1, math.Abs(x[i]))) {
			t.Fatalf("element %d: got %v, want %v", i, got, x)
		}
	}
}
