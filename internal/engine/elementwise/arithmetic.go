package elementwise

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// integer are the types that integers are computed in. Smaller ones are converted block by block; their results have
// the same low bits.
type integer interface{ int64 | uint64 }

type real interface{ float32 | float64 }

type number interface{ integer | real }

// runArithmetic computes the operators whose operands and result have one numeric type.
func runArithmetic(c *op.Call) error {
	switch dt := c.In[0].DType; {
	case (block.Float | block.Halves).Has(dt):
		return zip(c, c.In[0], c.In[1], arithmetic[float32](c.Node))
	case dt == ir.Double:
		return zip(c, c.In[0], c.In[1], arithmetic[float64](c.Node))
	case block.Signed.Has(dt):
		return zip(c, c.In[0], c.In[1], arithmetic[int64](c.Node))
	case block.Unsigned.Has(dt):
		return zip(c, c.In[0], c.In[1], arithmetic[uint64](c.Node))
	default:
		return unexpected(c, dt)
	}
}

// unexpected is the error for a type that the Shape function accepted.
func unexpected(c *op.Call, dt ir.DType) error {
	return fmt.Errorf("%s is not implemented for %s", c.ID.Type, dt)
}

// arithmetic returns the loops of an operator by its name.
func arithmetic[T number](n *op.Node) binaryLoops[T, T] {
	// Vector kernels exist for float32 only.
	if f, ok := any(kernels[n.ID.Type]).(binaryLoops[T, T]); ok && f.vv != nil {
		return f
	}
	switch n.ID.Type {
	case "Add":
		return binaryLoops[T, T]{vv: add[T]}
	case "Sub":
		return binaryLoops[T, T]{vv: sub[T]}
	case "Mul":
		return binaryLoops[T, T]{vv: mul[T]}
	case "Div":
		return binaryLoops[T, T]{vv: each(quotient[T]())}
	case "Max":
		return binaryLoops[T, T]{vv: each(func(a, b T) T { return max(a, b) })}
	case "Min":
		return binaryLoops[T, T]{vv: each(func(a, b T) T { return min(a, b) })}
	case "PRelu":
		return binaryLoops[T, T]{vv: prelu[T]}
	}
	return binaryLoops[T, T]{vv: each(remainder[T](n.Bool("fmod", false)))}
}

// each is a loop of f.
func each[T, D any](f func(a, b T) D) func(dst []D, a, b []T) {
	return func(dst []D, a, b []T) {
		// One check of the bounds instead of one for each element.
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
}

func add[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func sub[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mul[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func prelu[T number](dst, x, slope []T) {
	x, slope = x[:len(dst)], slope[:len(dst)]
	for i, v := range x {
		// NaN and -0 pass unchanged.
		if v < 0 {
			v *= slope[i]
		}
		dst[i] = v
	}
}

// isInteger reports whether T is an integer type.
func isInteger[T number]() bool { return T(1)/T(2) == 0 }

// quotient truncates integers.
func quotient[T number]() func(a, b T) T {
	if !isInteger[T]() {
		return func(a, b T) T { return a / b }
	}
	return func(a, b T) T {
		if b == 0 {
			return 0
		}
		return a / b
	}
}

// remainder is of the quotient rounded down, so that it has the sign of b, or truncated, with the sign of a. Both are
// exact.
func remainder[T number](truncated bool) func(a, b T) T {
	mod := modulo[T]()
	if truncated {
		return mod
	}
	return func(a, b T) T {
		m := mod(a, b)
		switch {
		case m == 0:
			return zeroLike(m, b)
		case (m < 0) != (b < 0):
			return m + b
		}
		return m
	}
}

func modulo[T number]() func(a, b T) T {
	if !isInteger[T]() {
		return func(a, b T) T { return T(math.Mod(float64(a), float64(b))) }
	}
	return func(a, b T) T {
		if b == 0 {
			return 0
		}
		// The types of T include floats, for which % is not defined.
		return a - a/b*b
	}
}

// zeroLike is a zero with the sign of b if T has signed zeros.
func zeroLike[T number](zero, b T) T {
	if isInteger[T]() {
		return zero
	}
	return T(math.Copysign(0, float64(b)))
}
