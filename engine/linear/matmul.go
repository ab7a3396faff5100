package linear

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/engine/activation"
	"github.com/mcompress/mcompress/engine/gemm"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A product is how one MatMul goes about its operands: batches of M×K times K×N, where the
// leading axes broadcast.
type product struct {
	m, n, k        int
	batch          []int64 // the leading axes of the result
	aBatch, bBatch []int64
	transA, transB bool
}

// productOf reads attributes and shapes (ONNX MatMul; com.microsoft FusedMatMul's transA and transB).
func productOf(n *op.Node, a, b *ir.Array) (*product, error) {
	p := &product{transA: n.Bool("transA", false), transB: n.Bool("transB", false)}
	if n.Bool("transBatchA", false) || n.Bool("transBatchB", false) {
		return nil, fmt.Errorf("transBatchA and transBatchB are not supported")
	}
	if len(a.Shape) == 0 || len(b.Shape) == 0 {
		return nil, fmt.Errorf("inputs A %s and B %s: a scalar is no matrix", a, b)
	}
	if a.DType != b.DType {
		return nil, fmt.Errorf("inputs A and B are %s and %s", a.DType, b.DType)
	}
	as, bs := a.Shape, b.Shape
	if len(as) == 1 {
		as, p.transA = []int64{1, as[0]}, false
	}
	if len(bs) == 1 {
		bs, p.transB = []int64{bs[0], 1}, false
	}
	m, k := tail(as, p.transA)
	k2, width := tail(bs, p.transB)
	if k != k2 {
		return nil, fmt.Errorf("inputs A %s and B %s: inner sizes %d and %d differ", a, b, k, k2)
	}
	p.m, p.n, p.k = int(m), int(width), int(k)
	p.aBatch, p.bBatch = as[:len(as)-2], bs[:len(bs)-2]
	var err error
	if p.batch, err = op.BroadcastShapes(p.aBatch, p.bBatch); err != nil {
		return nil, fmt.Errorf("inputs A and B: leading %w", err)
	}
	if op.Product(p.bBatch) == 1 && !p.transA {
		p.m *= int(op.Product(p.batch)) // one matrix: all rows at once
		p.batch, p.aBatch, p.bBatch = nil, nil, nil
	}
	return p, nil
}

// tail is the last two sizes of a shape, swapped for a transposed matrix.
func tail(s []int64, transposed bool) (rows, cols int64) {
	rows, cols = s[len(s)-2], s[len(s)-1]
	if transposed {
		return cols, rows
	}
	return rows, cols
}

func matMulShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "A")
	if err != nil {
		return nil, err
	}
	b, err := op.Arg(in, 1, "B")
	if err != nil {
		return nil, err
	}
	p, err := productOf(n, a, b)
	if err != nil {
		return nil, err
	}
	if !multiplies(a.DType) {
		return nil, fmt.Errorf("input A is %s, which MatMul does not take", a)
	}
	shape, err := op.BroadcastShapes(lead(a.Shape), lead(b.Shape))
	if err != nil {
		return nil, err
	}
	if len(a.Shape) > 1 {
		m, _ := tail(a.Shape, p.transA)
		shape = append(shape, m)
	}
	if len(b.Shape) > 1 {
		shape = append(shape, int64(p.n))
	}
	out := ir.Spec{DType: a.DType, Shape: shape}
	if bias := op.Opt(in, 2); bias != nil && (bias.DType != a.DType || bias.Elems() != int64(p.n)) {
		return nil, fmt.Errorf("input bias is %s for %d columns", bias, p.n)
	}
	if r := op.Opt(in, 3); r != nil && r.String() != out.String() {
		return nil, fmt.Errorf("input residual is %s for a result of %s", r, out)
	}
	return []ir.Spec{out}, nil
}

func lead(s []int64) []int64 { return slices.Clone(s[:max(len(s)-2, 0)]) }

func multiplies(dt ir.DType) bool {
	switch dt {
	case ir.Float, ir.Float16, ir.BFloat16, ir.Double, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64:
		return true
	}
	return false
}

// packs reports whether a constant right operand is packed ahead.
func packs(b *ir.Array) bool { return b.DType == ir.Float && len(b.Shape) >= 2 }

// prepareMatMul packs a constant right operand.
func prepareMatMul(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	b := op.Opt(in, 1)
	if b == nil || !packs(b) {
		return nil, nil
	}
	k, width := tail(b.Shape, n.Bool("transB", false))
	count := op.Product(b.Shape[:len(b.Shape)-2])
	packed := make([]*gemm.PackedFloat, count)
	bytes := int64(0)
	for i := range packed {
		at := ir.View[float32](b)[int64(i)*k*width : int64(i+1)*k*width]
		packed[i] = gemm.PackFloat(pool, matrix(at, int(k), int(width), n.Bool("transB", false)), int(k), int(width))
		bytes += packed[i].Bytes()
	}
	return &op.Prepared{State: packed, Bytes: bytes, Drops: []int{1}}, nil
}

// matrix is a row-major rows×cols matrix, or one that is stored transposed.
func matrix[T any](data []T, rows, cols int, transposed bool) gemm.Matrix[T] {
	if transposed {
		return gemm.Rows(data, rows).T()
	}
	return gemm.Rows(data, cols)
}

func matMulWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := productOf(n, in[0], in[1])
	if err != nil {
		return 0
	}
	s := gemm.Shape{M: p.m, N: p.n, K: p.k}
	work := gemm.FloatWork(s, int(op.Product(p.batch)), workers, n.IsConst(1) && packs(in[1]))
	if half(in[0].DType) {
		work = padded(work) + floatBytes(in[0]) + floatBytes(in[1]) + 4*op.Product(p.batch)*int64(p.m)*int64(p.n)
	}
	return work
}

func runMatMul(c *op.Call) error {
	p, err := productOf(c.Node, c.In[0], c.In[1])
	if err != nil {
		return err
	}
	if c.Out[0].Elems() == 0 {
		return nil
	}
	switch c.In[0].DType {
	case ir.Float:
		return p.float(c, ir.View[float32](c.In[0]), ir.View[float32](c.In[1]), ir.View[float32](c.Out[0]), c.Work)
	case ir.Float16, ir.BFloat16:
		return inFloats(c, func(a, b, out []float32, work []byte) error { return p.float(c, a, b, out, work) })
	case ir.Double:
		plain[float64](c, p)
	case ir.Int32:
		plain[int32](c, p)
	case ir.Int64:
		plain[int64](c, p)
	case ir.Uint32:
		plain[uint32](c, p)
	case ir.Uint64:
		plain[uint64](c, p)
	}
	return nil
}

func (p *product) float(c *op.Call, a, b, out []float32, work []byte) error {
	act, err := activation.Of(c.Text("activation", ""), c.Floats("activation_params"))
	if err != nil {
		return err
	}
	packed, _ := c.State.([]*gemm.PackedFloat)
	ai, bi := places(p.batch, p.aBatch), places(p.batch, p.bBatch)
	products := make([]gemm.FloatProduct, len(ai))
	for i := range products {
		f := &products[i]
		f.A = matrix(a[ai[i]*p.m*p.k:][:p.m*p.k], p.m, p.k, p.transA)
		if packed != nil {
			f.Packed = packed[bi[i]]
		} else {
			f.B = matrix(b[bi[i]*p.k*p.n:][:p.k*p.n], p.k, p.n, p.transB)
		}
		f.C, f.Stride = out[i*p.m*p.n:][:p.m*p.n], p.n
		f.Epilogue = gemm.Epilogue{Alpha: c.Float("alpha", 1), Activate: act}
		if bias := c.Opt(2); bias != nil {
			f.Epilogue.Bias = gemm.Matrix[float32]{Data: ir.View[float32](bias), Row: 0, Col: 1}
		}
		if r := c.Opt(3); r != nil {
			f.Epilogue.Residual = gemm.Rows(ir.View[float32](r)[i*p.m*p.n:][:p.m*p.n], p.n)
		}
	}
	gemm.Float(c.Pool, gemm.Shape{M: p.m, N: p.n, K: p.k}, work, products...)
	return nil
}

// places gives for each matrix of the result the number of the operand's matrix.
func places(batch, own []int64) []int {
	out := make([]int, op.Product(batch))
	strides, ahead := op.Strides(own), len(batch)-len(own)
	for i := range out {
		rest, at := int64(i), int64(0)
		for axis := len(batch) - 1; axis >= ahead; axis-- {
			if own[axis-ahead] > 1 {
				at += rest % batch[axis] * strides[axis-ahead]
			}
			rest /= batch[axis]
		}
		out[i] = int(at)
	}
	return out
}

// plain multiplies other types of numbers.
func plain[T gemm.Number](c *op.Call, p *product) {
	a, b, out := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
	ai, bi := places(p.batch, p.aBatch), places(p.batch, p.bBatch)
	for i := range ai {
		ma := matrix(a[ai[i]*p.m*p.k:][:p.m*p.k], p.m, p.k, p.transA)
		mb := matrix(b[bi[i]*p.k*p.n:][:p.k*p.n], p.k, p.n, p.transB)
		gemm.Plain(c.Pool, gemm.Shape{M: p.m, N: p.n, K: p.k}, ma, mb, out[i*p.m*p.n:][:p.m*p.n], p.n)
	}
}
