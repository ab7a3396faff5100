package linear

import (
	"unsafe"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// computed are the types that operators compute in. Whole numbers are computed modulo 2^64, of which those of every
// type are a part.
type computed interface{ float32 | float64 | uint64 }

// A scratch hands out parts of a call's Work. One that counts has no memory, so that Work and Run
// of an operator go through the same steps.
type scratch struct {
	mem    []byte
	counts bool
	used   int64
	most   int64 // that was used at once
}

// back gives back all that was handed out since so much was used.
func (s *scratch) back(used int64) { s.used = used }

func (s *scratch) bytes(n int64) []byte {
	from := s.used
	s.used += padded(n)
	s.most = max(s.most, s.used)
	if s.counts {
		return nil
	}
	return s.mem[from : from+n : from+n]
}

func take[T computed](s *scratch, n int64) []T {
	return kernel.Words[T](s.bytes(n * int64(unsafe.Sizeof(T(0)))))
}

// array is a tensor in scratch; without data if that only counts.
func (s *scratch) array(spec ir.Spec) *ir.Array {
	return &ir.Array{DType: spec.DType, Shape: spec.Shape, Data: s.bytes(spec.Bytes())}
}

// rest is what was not handed out.
func (s *scratch) rest() []byte {
	if s.counts {
		return nil
	}
	return s.mem[s.used:]
}

// wanted are outputs of n without data; nil where nobody reads them.
func wanted(n *op.Node, specs []ir.Spec) []*ir.Array {
	out := make([]*ir.Array, len(specs))
	for i, spec := range specs {
		if n.Wants(i) {
			out[i] = &ir.Array{DType: spec.DType, Shape: spec.Shape}
		}
	}
	return out
}

// outputs are out, and arrays in scratch for those that nobody reads.
func (s *scratch) outputs(specs []ir.Spec, out []*ir.Array) []*ir.Array {
	all := make([]*ir.Array, len(specs))
	copy(all, out)
	for i, spec := range specs {
		if all[i] == nil {
			all[i] = s.array(spec)
		}
	}
	return all
}

// load is a as elements of type T: its own memory if they are, else a copy in s.
func load[T computed](s *scratch, a *ir.Array) []T {
	if isNative[T](a.DType) {
		return ir.View[T](a)
	}
	x := take[T](s, a.Elems())
	if s.counts {
		return nil
	}
	switch x := any(x).(type) {
	case []float32:
		widen(x, a)
	case []float64:
		number.Read(x, a, 0)
	case []uint64:
		widenWhole(x, a)
	}
	return x
}

// space is memory for the elements of a as type T: its own, or some of s that store rounds from.
func space[T computed](s *scratch, a *ir.Array) []T {
	if isNative[T](a.DType) {
		return ir.View[T](a)
	}
	return take[T](s, a.Elems())
}

// store rounds x into a, unless it is a's memory.
func store[T computed](a *ir.Array, x []T) {
	if isNative[T](a.DType) {
		return
	}
	switch x := any(x).(type) {
	case []float32:
		narrow(a, x)
	case []float64:
		number.Write(a, 0, x)
	case []uint64:
		narrowWhole(a, x)
	}
}

// isNative reports whether elements of type dt are stored as T.
func isNative[T computed](dt ir.DType) bool {
	switch any(T(0)).(type) {
	case float32:
		return dt == ir.Float
	case float64:
		return dt == ir.Double
	}
	return dt == ir.Int64 || dt == ir.Uint64
}
