package engine

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A stacker stacks arrays of one type along a new axis. It copies each array at once: a loop may have millions of small
// scan outputs, which would need far more memory as arrays of their own.
type stacker struct {
	b        *bodies
	axis     int64 // of the result, negative from its end; 0 if the number of arrays is not known before
	backward bool  // the last array is the first of the result
	capacity int64 // number of arrays that fit in out

	at    int   // axis of out
	count int64 // arrays so far
	out   *ir.Array
	first ir.Spec // type of the arrays
}

// add copies a into the result.
func (k *stacker) add(a *ir.Array) (err error) {
	if k.out == nil {
		if k.at, err = op.Axis(k.axis, len(a.Shape)+1); err != nil {
			return err
		}
		k.first = ir.Spec{DType: a.DType, Shape: slices.Clone(a.Shape)}
		err = k.resize(max(k.capacity, 1))
	} else if a.DType != k.first.DType || !slices.Equal(a.Shape, k.first.Shape) {
		return fmt.Errorf("%s and %s cannot be stacked", k.first, a)
	} else if k.count == k.capacity {
		// By a quarter, so that time is linear in the number of arrays, and memory close to that of the result.
		err = k.resize(k.capacity + k.capacity/4 + 1)
	}
	if err != nil {
		return err
	}
	text := int64(0)
	for _, s := range a.Text {
		text = op.Plus(text, int64(len(s)))
	}
	if err := k.b.take(text); err != nil {
		return err
	}
	i := k.count
	if k.backward {
		i = k.capacity - 1 - i
	}
	k.count++
	outer, inner := op.Product(a.Shape[:k.at]), op.Product(a.Shape[k.at:])
	return move(outer, inner, func(o int64) (int64, int64) { return o*k.capacity + i, o }, k.out, a)
}

// resize moves the arrays to memory for n of them.
func (k *stacker) resize(n int64) error {
	spec := ir.Spec{DType: k.first.DType, Shape: slices.Insert(slices.Clone(k.first.Shape), k.at, n)}
	if err := op.Valid(spec); err != nil {
		return err
	}
	if err := k.b.take(op.Size(spec)); err != nil {
		return err
	}
	out := ir.NewArray(spec.DType, spec.Shape...)
	if k.out != nil {
		// In one piece, as only a stack along axis 0 grows: with another axis the number of arrays is known before.
		copy(out.Data, k.out.Data)
		copy(out.Text, k.out.Text)
		k.b.drop(op.Size(k.out.Spec()))
	}
	k.out, k.capacity = out, n
	return nil
}

// result returns the stacked arrays, nil if there are none.
func (k *stacker) result() (*ir.Array, error) {
	if k.out != nil && k.count < k.capacity {
		if err := k.resize(k.count); err != nil {
			return nil, err
		}
	}
	return k.out, nil
}
