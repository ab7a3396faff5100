package sparse

import (
	"context"
	"errors"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// CSR stores values, their columns, and where each row ends.
type CSR struct {
	pass.Selection
}

var csrMethod = method("csr", "values, columns and row pointers of the matrix [first dimension, rest]",
	func() pass.Options {
		return &CSR{}
	})

// Method describes the method.
func (CSR) Method() *pass.Method { return csrMethod }

// Run implements pass.Options.
func (CSR) Run(ctx context.Context, s *pass.Step) error {
	return (&sparsifier{forms: []sizer{newCSR}}).sparsify(ctx, s)
}

type csr struct {
	tensor
	rows, cols int64
	column     ir.DType
}

func newCSR(m statistics, _ int64) (layout, string) { return csrOf(m.tensor), "" }

func csrOf(t tensor) csr {
	rows, cols := t.matrix()
	return csr{t, rows, cols, narrowest(cols)}
}

func (csr) form() pass.Form { return pass.CSR }
func (csr) sums() bool      { return true }
func (csr) label() string   { return "csr" }
func (csr) work() int64     { return splitWork }
func (l csr) opset() int64  { return l.since(16, 20) }

func (l csr) parts() []part {
	return []part{
		{pass.Payload, ir.Spec{DType: l.DType, Shape: []int64{l.nnz}}},
		{pass.Indices, ir.Spec{DType: l.column, Shape: []int64{l.nnz}}},
		{pass.Indices, ir.Spec{DType: ir.Int32, Shape: []int64{l.rows}}},
	}
}

// build gives each value its row by counting the rows that end before it: ones are
// added where a row ends, and summed up. Ends after the last value are dropped.
func (l csr) build(b *builder, parts []*ir.Tensor) *ir.Value {
	one, zero := bytesOf(ir.Int32, []int64{1}), bytesOf(ir.Int32, []int64{0})
	marks := b.op("ScatterElements", []*ir.Value{
		// One element more than values: rows that end after the last value add their ones there.
		b.constantTensor(ir.Int32, zero, l.nnz+1), b.part(parts[2]), b.constantTensor(ir.Int32, one, l.rows),
	}, ir.StringAttr("reduction", "add"))
	row := b.head(b.cumSum(marks), l.nnz)
	start := b.op("Mul", []*ir.Value{row, b.int32(l.cols)})
	positions := b.op("Add", []*ir.Value{start, b.cast(b.part(parts[1]), ir.Int32)})
	return b.scatter(l.tensor, positions, b.part(parts[0]))
}

func (l csr) encode(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
	row, values := int64(0), int64(0)
	return l.split(ctx, in, out, false, func(bufs [][]byte, mask []byte, first, count int64) {
		// Rows without values end as well, at the same value as the one before.
		endRows := func(upTo int64) {
			for ; row < upTo; row++ {
				bufs[1] = appendNumber(bufs[1], ir.Int32, values)
			}
		}
		for i := range ones(mask) {
			at := first + i
			endRows(at / l.cols)
			bufs[0] = appendNumber(bufs[0], l.column, at-row*l.cols)
			values++
		}
		endRows((first + count) / l.cols)
	})
}

func (l csr) decode(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	ps := l.parts()
	columns, ends := newNumbers(in[1], ps[1].Spec), newNumbers(in[2], ps[2].Spec)
	row, end, values := int64(-1), int64(0), int64(0)
	return l.join(ctx, in[0], out, false, markPositions(l.Elems(), func() (int64, bool, error) {
		// More than one step for rows without values.
		for values >= end {
			next, ok, err := ends.next()
			if err != nil || !ok {
				return 0, false, err
			}
			if next < end || next > l.nnz {
				return 0, false, errors.New("rows do not end one after the other")
			}
			row, end = row+1, next
		}
		col, ok, err := columns.next()
		if err == nil && ok && col >= l.cols {
			err = errors.New("a column is outside of the matrix")
		}
		values++
		return row*l.cols + col, ok, err
	}))
}

func findCSR(ctx context.Context, f *finder, v *ir.Value) (layout, []*ir.Tensor) {
	s := f.scatteringOf(ctx, v)
	if s == nil {
		return nil, nil
	}
	payload := f.constant(s.values)
	// The path of build backwards, from the last node. What is missing on the way is nil, and so is what follows from
	// it.
	columns := f.constant(input(input(s.positions, "Add", 1), "Cast", 0))
	marks := input(input(input(input(s.positions, "Add", 0), "Mul", 0), "Slice", 0), "CumSum", 0)
	ends := f.constant(input(marks, "ScatterElements", 1))
	if payload == nil || columns == nil || ends == nil {
		return nil, nil
	}
	if s.DType, s.nnz, s.rows = payload.DType, payload.Elems(), ends.Elems(); s.rows < 1 || s.Elems()%s.rows != 0 {
		return nil, nil
	}
	return csrOf(s.tensor), []*ir.Tensor{payload, columns, ends}
}
