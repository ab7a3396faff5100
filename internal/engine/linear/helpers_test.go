package linear

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
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

// node is the call as a node of the newest version.
func (c call) node() optest.Case {
	return optest.Case{
		Domain: c.domain, Type: c.op, Version: 1000, In: c.in, Attrs: c.attrs, Consts: c.consts, Outputs: c.outputs,
		Workers: c.workers,
	}
}

func (c call) run() ([]*ir.Array, error) { return optest.Run(Ops(), c.node()) }

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
