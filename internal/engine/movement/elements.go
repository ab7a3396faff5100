package movement

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// grain is the minimum number of elements per task.
const grain = 16 << 10

// A transfer is a way to copy elements from one tensor to another of the same type: *stridedTransfer, *runs or fill.
type transfer interface{ isTransfer() }

// move runs t from src to dst, for any element type. They must not overlap.
func move(p *op.Pool, t transfer, dst, src *ir.Array) {
	if dst.Elems() == 0 {
		return
	}
	switch dst.DType.Bits() {
	case 0:
		apply(p, t, dst.Text, src.Text)
	case 8:
		apply(p, t, ir.View[uint8](dst), ir.View[uint8](src))
	case 16:
		apply(p, t, ir.View[uint16](dst), ir.View[uint16](src))
	case 32:
		apply(p, t, ir.View[uint32](dst), ir.View[uint32](src))
	case 64:
		apply(p, t, ir.View[uint64](dst), ir.View[uint64](src))
	case 128:
		apply(p, t, ir.View[complex128](dst), ir.View[complex128](src))
	default:
		codes := unpack(dst)
		apply(p, t, codes, unpack(src))
		pack(dst, codes)
	}
}

func apply[T any](p *op.Pool, t transfer, dst, src []T) {
	switch t := t.(type) {
	case *stridedTransfer:
		moveStrided(p, t, dst, src)
	case *runs:
		moveRuns(p, t, dst, src)
	case fill:
		p.Rows(len(dst), grain, func(from, to int) { fillWith(dst[from:to], src[0]) })
	}
}

// A fill copies the first element of src to all of dst.
type fill struct{}

func (fill) isTransfer() {}

func fillWith[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// unpack expands elements narrower than a byte to one byte each. They are packed lowest bits first (ONNX,
// TensorProto.raw_data), also across bytes.
func unpack(a *ir.Array) []uint8 {
	bits := int(a.DType.Bits())
	codes := make([]uint8, a.Elems())
	for i := range codes {
		at := i * bits
		pair := uint16(a.Data[at/8])
		if at%8+bits > 8 {
			pair |= uint16(a.Data[at/8+1]) << 8
		}
		codes[i] = uint8(pair>>(at%8)) & (1<<bits - 1)
	}
	return codes
}

// pack is the inverse of unpack. Bits after the last element are zero.
func pack(a *ir.Array, codes []uint8) {
	bits := int(a.DType.Bits())
	clear(a.Data)
	for i, c := range codes {
		at := i * bits
		pair := uint16(c) << (at % 8)
		a.Data[at/8] |= uint8(pair)
		if at%8+bits > 8 {
			a.Data[at/8+1] |= uint8(pair >> 8)
		}
	}
}

// tensors makes Shape functions safe for any input: they are called only with tensors of valid sizes.
func tensors(rows []op.Op) []op.Op {
	for i := range rows {
		shape := rows[i].Shape
		rows[i].Shape = func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			for j, a := range in {
				if a == nil {
					continue
				}
				if a.Kind != ir.Dense {
					return nil, fmt.Errorf("input %d is %s, want a tensor", j, a)
				}
				if err := a.Spec().Valid(); err != nil {
					return nil, fmt.Errorf("input %d: %w", j, err)
				}
				if !a.DType.Known() {
					return nil, fmt.Errorf("input %d has no element type", j)
				}
			}
			return shape(n, in)
		}
	}
	return rows
}

// copyAll copies src's payload to dst, which has its size and may share its memory.
func copyAll(p *op.Pool, dst, src *ir.Array) {
	copy(dst.Text, src.Text)
	if len(dst.Data) > 0 && &dst.Data[0] != &src.Data[0] {
		p.Rows(len(dst.Data), 4*grain, func(from, to int) { copy(dst.Data[from:to], src.Data[from:to]) })
	}
}
