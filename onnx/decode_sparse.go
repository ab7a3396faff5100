package onnx

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// sparse reads a SparseTensorProto. The result's payload is the dense tensor,
// expanded block by block when it is read. It is written back as it came, so its documentation does not count.
func (d *decoder) sparse(pieces []field) (*ir.Sparse, *ir.Tensor, error) {
	defer func(before int64) { d.metadata = before }(d.metadata)
	off := pieces[0].off
	s := &ir.Sparse{}
	var values, indices []field
	err := d.eachOf(pieces, func(f field) (err error) {
		switch f.num {
		case sparseValues:
			values = append(values, f)
		case sparseIndices:
			indices = append(indices, f)
		case sparseDims:
			err = d.ints(f, func(v uint64) { s.Shape = append(s.Shape, int64(v)) })
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if values == nil || indices == nil {
		return nil, nil, d.fail(off, "a sparse tensor needs values and indices")
	}
	if s.Values, err = d.tensor(values); err != nil {
		return nil, nil, err
	}
	if s.Indices, err = d.tensor(indices); err != nil {
		return nil, nil, err
	}
	if outlies(s.Values) || outlies(s.Indices) {
		return nil, nil, d.fail(off, "a sparse tensor has external data; only dense tensors may")
	}
	if s.Indices.DType != ir.Int64 {
		return nil, nil, d.fail(off, "the indices of a sparse tensor are not int64")
	}
	dense := ir.Spec{Name: s.Values.Name, DType: s.Values.DType, Shape: s.Shape}
	if err := dense.Valid(); err != nil {
		return nil, nil, d.fail(off, err.Error())
	}
	if err := sparseShapes(s); err != nil {
		return nil, nil, d.fail(off, err.Error())
	}
	if stored := s.Values.Bytes() + s.Indices.Bytes(); dense.Bytes() > max(maxDense, maxSparsity*stored) {
		return nil, nil, d.fail(
			off,
			fmt.Sprintf(
				"sparse tensor %q of %d bytes expands to %d bytes, more than %d times as many",
				dense.Name,
				stored,
				dense.Bytes(),
				maxSparsity,
			),
		)
	}
	return s, Dense(s).Derive()[0], nil
}

// The limits of the dense form of a sparse tensor: its size, beyond which the ratio to the stored bytes counts. It
// costs memory or time in proportion to the dense form, which the size of the file does not limit.
const (
	maxDense    = 1 << 30
	maxSparsity = 1000
)

// outlies reports whether t's payload is in another file. A sparse tensor is written
// back as it came, so its reference would point to a file that is not there.
func outlies(t *ir.Tensor) bool {
	o, _ := t.Origin.(*tensorOrigin)
	return o != nil && o.form == formExternal
}

func sparseShapes(s *ir.Sparse) error {
	nnz := s.Values.Elems()
	if len(s.Values.Shape) != 1 {
		return fmt.Errorf("sparse values have shape %v, want one dimension", s.Values.Shape)
	}
	sh := s.Indices.Shape
	if len(sh) == 1 && sh[0] == nnz || len(sh) == 2 && sh[0] == nnz && sh[1] == int64(len(s.Shape)) {
		return nil
	}
	return fmt.Errorf("sparse indices have shape %v, want [%d] or [%d,%d]", sh, nnz, nnz, len(s.Shape))
}

// Dense is the recipe that expands s. Indices must ascend, as ONNX demands.
func Dense(s *ir.Sparse) *ir.Recipe {
	size := s.Values.DType.Bits() / 8
	r := &ir.Recipe{
		Name: "dense",
		In:   []*ir.Tensor{s.Values, s.Indices},
		Out:  []ir.Spec{{Name: s.Values.Name, DType: s.Values.DType, Shape: s.Shape}},
		Work: 3 * ir.CopyBuffer,
	}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		if size == 0 {
			return errors.New("sparse tensors of sub-byte or string values are not expanded")
		}
		x := expander{shape: s.Shape, size: size, values: in[0], indices: in[1], nnz: s.Values.Elems(), last: -1}
		if len(s.Indices.Shape) == 2 {
			x.rank = s.Indices.Shape[1]
		}
		return x.write(ctx, out[0], r.Out[0].Bytes())
	}
	return r
}

// An expander writes a dense tensor from ascending coordinates.
type expander struct {
	shape           []int64
	size, rank, nnz int64 // rank is 0 for linear indices
	values, indices io.ReaderAt
	next, last      int64 // entries consumed; last linear index
	pos             []int64
	val             []byte
}

func (x *expander) write(ctx context.Context, w io.Writer, bytes int64) error {
	buf := make([]byte, min(bytes, ir.CopyBuffer))
	for off := int64(0); off < bytes; off += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf = buf[:min(int64(len(buf)), bytes-off)]
		clear(buf)
		if err := x.fill(buf, off/x.size); err != nil {
			return err
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	// Entries that ascend but are beyond the shape are left after the last block.
	if x.next < x.nnz || len(x.pos) > 0 {
		return errors.New("a sparse index is outside of the shape")
	}
	return nil
}

// fill places the entries within the block of elements from first on.
func (x *expander) fill(buf []byte, first int64) error {
	end := first + int64(len(buf))/x.size
	for {
		if len(x.pos) == 0 {
			if err := x.load(); err != nil || len(x.pos) == 0 {
				return err
			}
		}
		n := 0
		for n < len(x.pos) && x.pos[n] < end {
			copy(buf[(x.pos[n]-first)*x.size:], x.val[int64(n)*x.size:][:x.size])
			n++
		}
		x.pos, x.val = x.pos[n:], x.val[int64(n)*x.size:]
		if len(x.pos) > 0 {
			return nil
		}
	}
}

// load reads the next entries and makes their indices linear.
func (x *expander) load() error {
	n := min(x.nnz-x.next, 1<<14)
	width := max(x.rank, 1)
	idx, val := make([]byte, n*width*8), make([]byte, n*x.size)
	if err := ir.ReadFull(x.indices, idx, x.next*width*8); err != nil {
		return err
	}
	if err := ir.ReadFull(x.values, val, x.next*x.size); err != nil {
		return err
	}
	x.pos, x.val = make([]int64, n), val
	for i := range x.pos {
		lin := x.linear(idx[int64(i)*width*8:])
		if lin <= x.last {
			return errors.New("sparse indices do not ascend or lie outside of the shape")
		}
		x.pos[i], x.last = lin, lin
	}
	x.next += n
	return nil
}

// linear is the row-major index of one entry, or -1 if it is outside.
func (x *expander) linear(b []byte) int64 {
	if x.rank == 0 {
		return int64(binary.LittleEndian.Uint64(b))
	}
	lin := int64(0)
	for k := range x.rank {
		i := int64(binary.LittleEndian.Uint64(b[k*8:]))
		if i < 0 || i >= x.shape[k] {
			return -1
		}
		lin = lin*x.shape[k] + i
	}
	return lin
}
