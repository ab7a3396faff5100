package optest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Defects are the attributes that Malformed may add or replace.
type Defects struct {
	Ints, Lists, Texts []string
	Values             []string // of Texts
}

// Malformed is c with random defects: attributes and inputs with other values, types or shapes, and inputs that are
// absent.
func (c Case) Malformed(r *rand.Rand, d Defects) Case {
	c.Attrs, c.In = slices.Clone(c.Attrs), slices.Clone(c.In)
	for _, name := range d.Ints {
		if r.IntN(15) == 0 {
			c.Attrs = append(c.Attrs, ir.IntAttr(name, odd(r)))
		}
	}
	for _, name := range d.Lists {
		if r.IntN(12) == 0 {
			list := make([]int64, r.IntN(7))
			for i := range list {
				list[i] = odd(r)
			}
			c.Attrs = append(c.Attrs, ir.IntsAttr(name, list...))
		}
	}
	for _, name := range d.Texts {
		if r.IntN(25) == 0 {
			c.Attrs = append(c.Attrs, ir.StringAttr(name, d.Values[r.IntN(len(d.Values))]))
		}
	}
	for i, a := range c.In {
		if a != nil && r.IntN(5) == 0 {
			c.In[i] = malformedArray(r, a)
		}
	}
	c.In = c.In[:len(c.In)-r.IntN(2)*r.IntN(2)]
	return c
}

// odd is an integer near a limit.
func odd(r *rand.Rand) int64 {
	values := []int64{-1 << 40, -2, -1, 0, 1, 2, 3, 7, 16, 23, 1 << 20, 1 << 31, 1 << 62}
	return values[r.IntN(len(values))]
}

// malformedArray is an array with another shape and often another type than a, or none.
func malformedArray(r *rand.Rand, a *ir.Array) *ir.Array {
	shape := slices.Clone(a.Shape)
	switch i := r.IntN(max(len(shape), 1)); {
	case r.IntN(8) == 0:
		return nil
	case r.IntN(8) == 0:
		return &ir.Array{Kind: ir.Sequence}
	case len(shape) > 0 && r.IntN(3) > 0:
		shape[i] = int64(r.IntN(7))
	case len(shape) > 0 && r.IntN(2) == 0:
		shape = shape[:i]
	default:
		shape = append(shape, int64(r.IntN(3)))
	}
	types := []ir.DType{
		a.DType, a.DType, a.DType, a.DType, a.DType, ir.Float, ir.Double, ir.Float16, ir.Uint8, ir.Int8, ir.Int32,
		ir.Int64,
		ir.String, ir.Int4, ir.Float4E2M1, ir.Float8E8M0,
	}
	b := ir.NewArray(types[r.IntN(len(types))], shape...)
	for i := range b.Data {
		b.Data[i] = byte(r.Uint32())
	}
	return b
}

// Panic runs the case if it is valid and small. It returns the message of a panic, empty if there is none.
func Panic(row *op.Op, c Case) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	if small(row, c) {
		_, _ = RunRow(row, c)
	}
	return ""
}

// small reports whether the case is valid, first without data as in a memory plan, and needs little memory.
func small(row *op.Op, c Case) bool {
	n := c.Node()
	if _, err := row.Shape(n, withoutData(c.In)); err != nil && !errors.Is(err, op.ErrUnknown) {
		return false
	}
	specs, err := row.Shape(n, c.In)
	if err != nil || slices.ContainsFunc(c.In, func(a *ir.Array) bool { return a != nil && !op.IsKnown(a) }) {
		return false
	}
	for _, s := range specs {
		if s.Valid() != nil || s.Elems() > 1<<20 {
			return false
		}
	}
	return row.Work == nil || row.Work(n, c.In, max(c.Workers, 1)) <= 1<<28
}

func withoutData(in []*ir.Array) []*ir.Array {
	types := make([]*ir.Array, len(in))
	for i, a := range in {
		if a != nil {
			types[i] = &ir.Array{Kind: a.Kind, DType: a.DType, Shape: a.Shape}
		}
	}
	return types
}
