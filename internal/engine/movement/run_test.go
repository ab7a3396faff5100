package movement

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// run runs one node with that many outputs.
func run(typ string, version int64, outputs int, attrs []*ir.Attr, in ...*ir.Array) ([]*ir.Array, error) {
	return optest.Run(Ops(), optest.Case{Type: typ, Version: version, In: in, Attrs: attrs, Outputs: outputs,
		Workers: 3})
}

// same describes the first difference between two values.
func same(got, want *ir.Array) error {
	if got == nil || got.Kind != want.Kind || len(got.Items) != len(want.Items) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	for i := range want.Items {
		if err := same(got.Items[i], want.Items[i]); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	if !slices.Equal(got.Text, want.Text) {
		return fmt.Errorf("got %q, want %q", got.Text, want.Text)
	}
	if want.DType == ir.Int64 && !bytes.Equal(got.Data, want.Data) {
		return fmt.Errorf("got %v, want %v", ir.View[int64](got), ir.View[int64](want))
	}
	if !bytes.Equal(got.Data, want.Data) {
		return fmt.Errorf("got bytes %v, want %v", got.Data, want.Data)
	}
	return nil
}

// An example is one node with one output.
type example struct {
	typ     string
	version int64
	attrs   []*ir.Attr
	in      []*ir.Array
	want    *ir.Array // nil for an error
}

func check(t *testing.T, examples []example) {
	t.Helper()
	for _, e := range examples {
		got, err := run(e.typ, e.version, 1, e.attrs, e.in...)
		switch {
		case e.want == nil && err == nil:
			t.Errorf("%s %d of %v gives %v", e.typ, e.version, e.in, got[0])
		case e.want != nil && err != nil:
			t.Errorf("%s %d of %v: %v", e.typ, e.version, e.in, err)
		case e.want != nil:
			if err := same(got[0], e.want); err != nil {
				t.Errorf("%s %d of %v: %v", e.typ, e.version, e.in, err)
			}
		}
	}
}

func num(name string, i int64) *ir.Attr     { return &ir.Attr{Name: name, Type: ir.AttrInt, I: i} }
func nums(name string, i ...int64) *ir.Attr { return &ir.Attr{Name: name, Type: ir.AttrInts, Ints: i} }
func word(name, s string) *ir.Attr          { return &ir.Attr{Name: name, Type: ir.AttrString, S: s} }

func attrs(a ...*ir.Attr) []*ir.Attr    { return a }
func in(a ...*ir.Array) []*ir.Array     { return a }
func vec(i ...int64) *ir.Array          { return ir.ArrayOf(i, int64(len(i))) }
func scalarOf(i int64) *ir.Array        { return ir.ArrayOf([]int64{i}) }
func text(s ...string) *ir.Array        { return ir.TextOf(s, int64(len(s))) }
func sequence(a ...*ir.Array) *ir.Array { return sequenceOf(a) }

// dims reads a shape, followed by elements: of int64.
func dims(shape ...int64) func(i ...int64) *ir.Array {
	return func(i ...int64) *ir.Array { return ir.ArrayOf(i, shape...) }
}

// count is a tensor of 0, 1, 2, ….
func count(shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Int64, shape...)
	for i := range ir.View[int64](a) {
		ir.View[int64](a)[i] = int64(i)
	}
	return a
}

// as is a converted to the type, packed if the type is narrower than a byte.
func as(dt ir.DType, a *ir.Array) *ir.Array {
	out := ir.NewArray(dt, a.Shape...)
	codes := make([]uint8, a.Elems())
	for i, x := range ir.View[int64](a) {
		switch {
		case dt == ir.String:
			out.Text[i] = fmt.Sprint(x)
		case dt.Bits() < 8:
			codes[i] = uint8(x) & (1<<dt.Bits() - 1)
		default:
			out.Data[int64(i)*dt.Bits()/8] = byte(x)
		}
	}
	if dt.Bits() < 8 && dt != ir.String {
		pack(out, codes)
	}
	return out
}
