package sparse

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// COO stores values and their positions in the flat tensor.
type COO struct{ pass.Selection }

var cooMethod = method("coo", "values and 32-bit positions", func() pass.Options { return &COO{} })

// Method describes the method.
func (COO) Method() *pass.Method { return cooMethod }

// Run implements pass.Options.
func (COO) Run(ctx context.Context, s *pass.Step) error {
	return (&sparsifier{forms: []sizer{newCOO}}).sparsify(ctx, s)
}

type coo struct{ tensor }

func newCOO(m statistics, _ int64) (layout, string) { return coo{m.tensor}, "" }

func (coo) form() pass.Form { return pass.COO }
func (coo) sums() bool      { return false }
func (coo) label() string   { return "coo" }
func (coo) work() int64     { return splitWork }
func (l coo) opset() int64  { return l.since(11, 20) }

func (l coo) parts() []part {
	n := []int64{l.nnz}
	return []part{
		{pass.Payload, ir.Spec{DType: l.DType, Shape: n}},
		{pass.Indices, ir.Spec{DType: ir.Int32, Shape: n}},
	}
}

func (l coo) build(b *builder, parts []*ir.Tensor) *ir.Value {
	return b.scatter(l.tensor, b.part(parts[1]), b.part(parts[0]))
}

func (l coo) encode(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
	return l.split(ctx, in, out, false, func(bufs [][]byte, mask []byte, first, _ int64) {
		for i := range ones(mask) {
			bufs[0] = appendNumber(bufs[0], ir.Int32, first+i)
		}
	})
}

func (l coo) decode(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	positions := newNumbers(in[1], l.parts()[1].Spec)
	return l.join(ctx, in[0], out, false, markPositions(l.Elems(), positions.next))
}

func findCOO(ctx context.Context, f *finder, v *ir.Value) (layout, []*ir.Tensor) {
	s := f.scatteringOf(ctx, v)
	if s == nil {
		return nil, nil
	}
	payload, positions := f.constant(s.values), f.constant(s.positions)
	if payload == nil || positions == nil {
		return nil, nil
	}
	s.DType, s.nnz = payload.DType, payload.Elems()
	return coo{s.tensor}, []*ir.Tensor{payload, positions}
}
