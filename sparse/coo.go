package sparse

import (
	"context"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// COO stores values and their linear positions in a Constant node's sparse_value.
type COO struct{ pass.Selection }

var cooMethod = method("coo", "values and 64-bit positions: ONNX's own sparse tensor", func() pass.Options { return &COO{} })

// Method describes the method.
func (COO) Method() *pass.Method { return cooMethod }

// Requires returns the capability of runtimes without which there is no form.
func (COO) Requires() []pass.Requirement {
	return []pass.Requirement{{Capability: pass.SparseTensor, Nearest: "bitmask"}}
}

// Run implements pass.Options.
func (COO) Run(ctx context.Context, s *pass.Step) error {
	return (&sparsifier{forms: []sizer{newCOO}}).run(ctx, s)
}

type coo struct{ tensor }

func newCOO(m measured, _ int64) (layout, string) {
	if m.fill != 0 {
		return nil, fmt.Sprintf("no coo (fill %d)", m.fill)
	}
	return coo{m.tensor}, ""
}

func (coo) form() pass.Form { return pass.COO }
func (coo) label() string   { return "coo" }
func (coo) work() int64     { return splitWork }
func (l coo) opset() int64  { return l.since(11, 13) }

func (l coo) parts() []part {
	n := []int64{l.nnz}
	return []part{
		{pass.Payload, ir.Spec{DType: l.DType, Shape: n}},
		{pass.Indices, ir.Spec{DType: ir.Int64, Shape: n}},
	}
}

func (l coo) build(b *builder, parts []*ir.Tensor) *ir.Value {
	s := &ir.Sparse{Values: parts[0], Indices: parts[1], Shape: l.Shape}
	return b.op("Constant", nil, &ir.Attr{Name: sparseValue, Type: ir.AttrSparse, Sparse: s})
}

// sparseValue is the attribute of Constant that holds a sparse tensor.
const sparseValue = "sparse_value"

func (l coo) encode(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
	return l.split(ctx, in, out, false, func(bufs [][]byte, mask []byte, first, _ int64) {
		for i := range ones(mask) {
			bufs[0] = appendNumber(bufs[0], ir.Int64, first+i)
		}
	})
}

func (l coo) decode(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	positions := newNumbers(in[1], l.parts()[1].Spec)
	return l.join(ctx, in[0], out, false, markPositions(l.Elems(), positions.next))
}

// findCOO recognises a node that build has made. In an opened model it is a constant
// instead: see lifted.
func findCOO(_ context.Context, _ *finder, v *ir.Value) (layout, []*ir.Tensor) {
	n := v.Producer()
	if !n.Op.Is("Constant") || n.Attr(sparseValue) == nil || n.Attr(sparseValue).Sparse == nil {
		return nil, nil
	}
	s := n.Attr(sparseValue).Sparse
	spec := ir.Spec{DType: s.Values.DType, Shape: s.Shape}
	return coo{tensor{Spec: spec, nnz: s.Values.Elems()}}, []*ir.Tensor{s.Values, s.Indices}
}
