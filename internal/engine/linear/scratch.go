package linear

import (
	"unsafe"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// computed are the types that operators compute in. Integers are computed modulo 2^64, which is exact modulo the width
// of every type.
type computeType interface{ float32 | float64 | uint64 }

// A scratch allocates parts of a call's Work. A counting one has no memory, so that Work and Run of an operator share
// the same steps.
type scratch struct {
	mem    []byte
	counts bool
	used   int64
	most   int64 // maximum number of bytes in use
}

// release frees everything that was allocated since used bytes were in use.
func (s *scratch) release(used int64) { s.used = used }

func (s *scratch) bytes(n int64) []byte {
	from := s.used
	s.used += padded(n)
	s.most = max(s.most, s.used)
	if s.counts {
		return nil
	}
	return s.mem[from : from+n : from+n]
}

func take[T computeType](s *scratch, n int64) []T {
	return kernel.Words[T](s.bytes(n * int64(unsafe.Sizeof(T(0)))))
}

// array is a tensor in scratch memory; without data in a counting scratch.
func (s *scratch) array(spec ir.Spec) *ir.Array {
	return &ir.Array{DType: spec.DType, Shape: spec.Shape, Data: s.bytes(spec.Bytes())}
}

// rest is the unused memory.
func (s *scratch) rest() []byte {
	if s.counts {
		return nil
	}
	return s.mem[s.used:]
}

// consumedOutputs are outputs of n without data; nil for those without consumers.
func consumedOutputs(n *op.Node, specs []ir.Spec) []*ir.Array {
	out := make([]*ir.Array, len(specs))
	for i, spec := range specs {
		if n.HasConsumer(i) {
			out[i] = &ir.Array{DType: spec.DType, Shape: spec.Shape}
		}
	}
	return out
}

// outputs are out, with arrays in scratch memory for those without consumers.
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

// load is a as elements of type T: its own memory if it has this type, else a copy in s.
func load[T computeType](s *scratch, a *ir.Array) []T {
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
		integers[a.DType].widen(x, a)
	}
	return x
}

// space is memory for the elements of a as type T: its own, or memory of s that store rounds from.
func space[T computeType](s *scratch, a *ir.Array) []T {
	if isNative[T](a.DType) {
		return ir.View[T](a)
	}
	return take[T](s, a.Elems())
}

// store rounds x into a, unless it is a's memory.
func store[T computeType](a *ir.Array, x []T) {
	if isNative[T](a.DType) {
		return
	}
	switch x := any(x).(type) {
	case []float32:
		narrow(a, x)
	case []float64:
		number.Write(a, 0, x)
	case []uint64:
		integers[a.DType].narrow(a, x)
	}
}

// isNative reports whether elements of type dt are stored as T.
func isNative[T computeType](dt ir.DType) bool {
	switch any(T(0)).(type) {
	case float32:
		return dt == ir.Float
	case float64:
		return dt == ir.Double
	}
	return dt == ir.Int64 || dt == ir.Uint64
}
