package engine

import (
	"context"
	"testing"
	"unsafe"

	"github.com/mcompress/mcompress/ir"
)

// negation is a session of one node, and a function that runs it on ones.
func negation(t *testing.T) (*Interpreter, func(rows int64) *ir.Array) {
	t.Helper()
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 64}}}
	m.Graph.Inputs = []*ir.Value{x}
	y := m.Graph.Insert(nil, "Neg", []*ir.Value{x})
	m.Graph.AddOutput(y)
	e, err := Open(context.Background(), m, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, func(rows int64) *ir.Array {
		in := ir.NewArray(ir.Float, rows, 64)
		for i := range ir.View[float32](in) {
			ir.View[float32](in)[i] = float32(rows)
		}
		out, err := e.Run(context.Background(), map[string]*ir.Array{"x": in}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := out[y.Name]
		for i, v := range ir.View[float32](a) {
			if v != -float32(rows) {
				t.Fatalf("element %d of %d rows is %v", i, rows, v)
			}
		}
		if int64(len(a.Data)) != a.Bytes() {
			t.Fatalf("%d bytes for %s", len(a.Data), a)
		}
		return a
	}
}

func start(a *ir.Array) *byte { return unsafe.SliceData(a.Data) }

// A result has the memory of a recycled one if that is not more than twice as large; it is used once, even if it was
// recycled twice.
func TestRecycle(t *testing.T) {
	e, run := negation(t)
	first := run(10)
	e.Recycle(first, first)
	second := run(9)
	if start(second) != start(first) {
		t.Error("the memory of a recycled result is not used")
	}
	if third := run(9); start(third) == start(second) {
		t.Error("two results share memory")
	}
	e.Recycle(second)
	if small := run(4); start(small) == start(second) {
		t.Error("4 rows have the memory of 10")
	}
}

// Results have memory to grow, as keys and values of a sequence do by a token.
func TestRecycledResultsGrow(t *testing.T) {
	e, run := negation(t)
	a, seen := run(100), map[*byte]bool{}
	for i := range int64(10) {
		b := run(101 + i)
		e.Recycle(a)
		seen[start(b)] = true
		a = b
	}
	if len(seen) > 3 {
		t.Errorf("10 results that grow by a row have %d allocations", len(seen))
	}
}

// The memory of recycled results is idle memory of the session, of a bounded number of blocks.
func TestRecycledMemoryIsCounted(t *testing.T) {
	e, run := negation(t)
	kept := run(10)
	e.Free()
	e.Recycle(kept)
	if m := e.Memory(); m.Idle != kept.Bytes() || m.Running != 0 {
		t.Errorf("%+v, want %d bytes of a recycled result", m, kept.Bytes())
	}
	for i := range int64(10) {
		e.Recycle(ir.NewArray(ir.Float, 100+i, 64))
	}
	if m := e.Memory(); m.Idle != (108+109)*256 || m.Running != 0 {
		t.Errorf("%+v, want the last two blocks", m)
	}
	e.Free()
	if m := e.Memory(); m.Idle != 0 || m.Running != 0 {
		t.Errorf("%+v after Free", m)
	}
}
