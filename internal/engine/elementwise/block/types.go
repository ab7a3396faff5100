package block

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Set is a set of element types.
type Set uint64

// The sets of ONNX's type constraints.
const (
	Float    Set = 1 << ir.Float
	Halves   Set = 1<<ir.Float16 | 1<<ir.BFloat16
	Floats   Set = Float | Halves | 1<<ir.Double
	Signed   Set = 1<<ir.Int8 | 1<<ir.Int16 | 1<<ir.Int32 | 1<<ir.Int64
	Unsigned Set = 1<<ir.Uint8 | 1<<ir.Uint16 | 1<<ir.Uint32 | 1<<ir.Uint64
	Ints     Set = Signed | Unsigned
	Numbers  Set = Floats | Ints
	Bool     Set = 1 << ir.Bool
	Text     Set = 1 << ir.String
	Complex  Set = 1<<ir.Complex64 | 1<<ir.Complex128
	Float8   Set = 1<<ir.Float8E4M3FN | 1<<ir.Float8E4M3FNUZ | 1<<ir.Float8E5M2 | 1<<ir.Float8E5M2FNUZ
	Any      Set = 1<<(ir.Float6E3M2+1) - 1<<(ir.Undefined+1)
)

// Of is the set of these types.
func Of(types ...ir.DType) Set {
	var s Set
	for _, d := range types {
		s |= 1 << d
	}
	return s
}

// Has reports whether d is in s.
func (s Set) Has(d ir.DType) bool { return s>>d&1 == 1 }

// Tensor is input i, called name in the specification, or an error if it is missing, not a tensor, or not of a type in
// s.
func (s Set) Tensor(in []*ir.Array, i int, name string) (*ir.Array, error) {
	a, err := op.Arg(in, i, name)
	if err != nil {
		return nil, err
	}
	if a.Kind != ir.Dense || !s.Has(a.DType) {
		return nil, fmt.Errorf("input %s is %s, which is not supported", name, a)
	}
	return a, nil
}

// Like is input i, or an error if it is missing or not of a's type.
func Like(a *ir.Array, in []*ir.Array, i int, name string) (*ir.Array, error) {
	b, err := Any.Tensor(in, i, name)
	if err != nil {
		return nil, err
	}
	if b.DType != a.DType {
		return nil, fmt.Errorf("input %s is %s, want %s like the first input", name, b, a.DType)
	}
	return b, nil
}

// OptLike is Like for an optional input, nil if absent.
func OptLike(a *ir.Array, in []*ir.Array, i int, name string) (*ir.Array, error) {
	if op.Opt(in, i) == nil {
		return nil, nil
	}
	return Like(a, in, i, name)
}
