package sparse

import (
	"context"
	"io"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A layout is one tensor in one sparse form, all sizes known.
type layout interface {
	dense() ir.Spec
	form() pass.Form
	label() string // the form with its width, as ledger rows name it
	opset() int64  // the first one that has every operator, for the tensor's type
	parts() []part // the payload first
	sums() bool    // whether CumSum computes the positions

	// build adds the nodes that make the dense tensor from tensors like parts.
	build(b *builder, parts []*ir.Tensor) *ir.Value
	// encode writes the parts of the dense tensor in.
	encode(ctx context.Context, in io.ReaderAt, out []io.Writer) error
	// decode writes the dense tensor. Parts that encode did not write are an error.
	decode(ctx context.Context, in []io.ReaderAt, out io.Writer) error
	work() int64 // most bytes that encode and decode hold
}

// A part is one tensor that a form stores.
type part struct {
	role pass.Role
	ir.Spec
}

// A sizer lays a measured tensor out, or returns the reason why its form cannot hold it. version is
// the opset in force in the graph of the tensor.
type sizer func(m statistics, version int64) (layout, string)

// A tensor is a dense one: its spec, the element that is not stored, and how many are.
type tensor struct {
	ir.Spec
	fill byte // 0 but for 8-bit types
	nnz  int64
	rows int64 // of its matrix; 0 for the first dimension
}

func (t tensor) dense() ir.Spec { return t.Spec }

func (t tensor) size() int64 { return t.DType.Bits() / 8 }

// since is the opset of a form that bfloat16 joins later than other types.
func (t tensor) since(version, bfloat16 int64) int64 {
	if t.DType == ir.BFloat16 {
		return bfloat16
	}
	return version
}

// element is the one that is not stored.
func (t tensor) element() []byte {
	e := make([]byte, t.size())
	e[0] = t.fill
	return e
}

// stores reports whether the forms hold elements of type dt. Narrower ones are packed,
// and other integers are no weights.
func stores(dt ir.DType) bool {
	return dt.IsFloat() || dt == ir.Int8 || dt == ir.Uint8
}

// maxElems is what int32 positions reach; they halve the memory of a runtime while it folds.
const maxElems = math.MaxInt32

// matrix is the rows and columns of the tensor's matrix.
func (t tensor) matrix() (rows, cols int64) {
	rows = t.rows
	if rows == 0 {
		rows = pass.MatrixRows(t.Shape, nil)
	}
	return rows, t.Elems() / rows
}

// narrowest is the smallest unsigned type that holds 0 to n-1.
func narrowest(n int64) ir.DType {
	switch {
	case n <= 1<<8:
		return ir.Uint8
	case n <= 1<<16:
		return ir.Uint16
	}
	return ir.Uint32
}

// recipe is what writes l's parts from the dense tensor.
func recipe(l layout, dense *ir.Tensor) *ir.Recipe {
	r := &ir.Recipe{Name: l.form().Name, In: []*ir.Tensor{dense}, Work: l.work()}
	for _, p := range l.parts() {
		r.Out = append(r.Out, ir.Spec{Name: dense.Name, DType: p.DType, Shape: p.Shape})
	}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		return l.encode(ctx, in[0], out)
	}
	return r
}

// payloads are l's parts as the recipe's results. They have no names of their own: one in
// an attribute would be written.
func payloads(l layout, dense *ir.Tensor) []*ir.Tensor {
	ts := recipe(l, dense).Derive()
	for _, t := range ts {
		t.Name = ""
	}
	return ts
}

// denseName is what recipes of dense tensors are called, the reader's own among them.
const denseName = "dense"

// restore makes the dense tensor from tensors like l's parts.
func restore(l layout, name string) func(parts []*ir.Tensor) *ir.Tensor {
	dense := l.dense()
	dense.Name = name
	return func(parts []*ir.Tensor) *ir.Tensor {
		r := &ir.Recipe{Name: denseName, In: parts, Out: []ir.Spec{dense}, Work: l.work()}
		r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			return l.decode(ctx, in, out[0])
		}
		return r.Derive()[0]
	}
}
