package linear

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/ir"
)

// matMuls are MatMul and its variants. com.microsoft's FusedMatMul has alpha, transA, transB, transBatchA and
// transBatchB. mcompress's has bias and residual as inputs 2 and 3, an activation, and permutations of axes.
func matMuls() []op.Op {
	row := op.Op{Since: 1, Shape: matMulShape, Run: runMatMul, Work: matMulWork, Prepare: prepareMatMul,
		States: matMulStates(), Decodes: decodes, Arrange: arrange}
	return sameRow(row, []ir.OpID{
		{Type: "MatMul"}, {Domain: microsoft, Type: "FusedMatMul"}, {Domain: microsoft, Type: "TransposeMatMul"},
		{Domain: microsoft, Type: "FusedMatMulActivation"}, {Domain: "mcompress", Type: "MatMul"},
	})
}

// A product is one MatMul: stacks of M×K times K×N matrices, whose leading axes broadcast to batch.
type product struct {
	gemm.Shape
	a, b  operand
	batch []int64
	out   []int64 // shape of the result
}

func productOf(n *op.Node, in []*ir.Array) (*product, error) {
	a, err := op.Arg(in, 0, "A")
	if err != nil {
		return nil, err
	}
	b, err := op.Arg(in, 1, "B")
	if err != nil {
		return nil, err
	}
	if a.DType != b.DType || !multiplies(a.DType) {
		return nil, fmt.Errorf("inputs A %s and B %s cannot be multiplied", a, b)
	}
	p := &product{}
	if p.a, err = operandOf(n, "A", a); err != nil {
		return nil, err
	}
	if p.b, err = operandOf(n, "B", b); err != nil {
		return nil, err
	}
	if p.a.cols != p.b.rows {
		return nil, fmt.Errorf("inputs A %s and B %s: inner sizes %d and %d differ", a, b, p.a.cols, p.b.rows)
	}
	if p.batch, err = op.BroadcastShapes(p.a.batch, p.b.batch); err != nil {
		return nil, fmt.Errorf("inputs A and B: leading %w", err)
	}
	p.out = append(make([]int64, 0, len(p.batch)+2), p.batch...)
	if len(a.Shape) > 1 {
		p.out = append(p.out, int64(p.a.rows))
	}
	if len(b.Shape) > 1 {
		p.out = append(p.out, int64(p.b.cols))
	}
	p.mergeBatch()
	return p, nil
}

// mergeBatch turns a stack of products with a common right matrix into one product.
func (p *product) mergeBatch() {
	p.Shape = gemm.Shape{M: p.a.rows, N: p.b.cols, K: p.a.cols}
	// Not if A is broadcast: its rows would have to be repeated.
	if p.b.count() != 1 || p.a.count() != op.Product(p.batch) {
		return
	}
	if a, ok := p.a.merge(); ok {
		p.a, p.M, p.batch, p.b.batch, p.b.strides = a, a.rows, nil, nil, nil
	}
}

func matMulShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	p, err := productOf(n, in)
	if err != nil {
		return nil, err
	}
	out := ir.Spec{DType: in[0].DType, Shape: p.out}
	if bias := op.Opt(in, 2); bias != nil && (bias.DType != ir.Float ||
		!slices.Equal(bias.Shape, []int64{int64(p.N)})) {
		return nil, fmt.Errorf("input bias is %s for %d columns", bias, p.N)
	}
	if r := op.Opt(in, 3); r != nil && r.String() != out.String() {
		return nil, fmt.Errorf("input residual is %s for a result of %s", r, out)
	}
	if (len(in) > 2 || n.Has("activation")) && out.DType != ir.Float {
		return nil, fmt.Errorf("fused bias, residual and activation support float only, got %s", out.DType)
	}
	_, err = activationOf(n)
	return []ir.Spec{out}, err
}

// valid is an error if an input's shape is invalid.
func valid(in []*ir.Array) error {
	for i, a := range in {
		if a == nil {
			continue
		}
		if err := a.Spec().Valid(); err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
	}
	return nil
}

func multiplies(dt ir.DType) bool {
	switch dt {
	case ir.Float, ir.Float16, ir.BFloat16, ir.Double, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64:
		return true
	}
	return false
}

// packs reports whether a constant right operand is prepacked.
func packs(b *ir.Array) bool { return b.DType == ir.Float && len(b.Shape) >= 2 }

// packsSparse reports whether it is if it has enough zeros.
func packsSparse(b *ir.Array) bool { return packs(b) || b.DType == ir.Float16 && len(b.Shape) >= 2 }

// matMulStates are the types of results of prepareMatMul.
func matMulStates() []any { return []any{[]*gemm.PackedFloat(nil), (*spmm.Matrix)(nil)} }

// prepareMatMul prepacks a constant right operand.
func prepareMatMul(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	b := op.Opt(in, 1)
	if b == nil || !packsSparse(b) {
		return nil, nil
	}
	o, err := operandOf(n, "B", b)
	if err != nil {
		return nil, err
	}
	// First, as a packed sparse form has no dense data yet.
	if made := prepareSparse(n, b, o, pool); made != nil {
		return made, nil
	}
	if !packs(b) {
		return nil, nil
	}
	if n.Packed != nil {
		b = packedweight.Dense(n.Packed, b.Shape)
	}
	packed := make([]*gemm.PackedFloat, o.count())
	bytes := int64(0)
	for i, at := range places(o.batch, o.batch, o.strides) {
		packed[i] = gemm.PackFloat(pool, matrix(o, ir.View[float32](b), at), o.rows, o.cols)
		bytes += packed[i].Bytes()
	}
	return &op.Prepared{State: packed, Bytes: bytes, Drops: []int{1}}, nil
}

func matMulWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := productOf(n, in)
	if err != nil {
		return 0
	}
	if in[0].DType != ir.Float && !half(in[0].DType) {
		return 0
	}
	s := &scratch{counts: true}
	p.layOut(s, in, &ir.Array{DType: in[0].DType, Shape: p.out})
	packed := n.IsConst(1) && packs(in[1]) && n.Packed == nil
	work := gemm.FloatWork(p.Shape, int(op.Product(p.batch)), workers, packed)
	if (n.IsConst(1) || n.Packed != nil) && packsSparse(in[1]) && maybeSparse(p.b) {
		// Whether B is sparse depends on values, on which a plan must not.
		work = max(work, spmm.Work(p.N, p.M, workers))
	}
	return s.used + work
}

// layOut provides A, bias and result as float32; B is widened during the product.
func (p *product) layOut(s *scratch, in []*ir.Array, out *ir.Array) (a, bias, y []float32) {
	if b := op.Opt(in, 2); b != nil {
		bias = load[float32](s, b)
	}
	return load[float32](s, in[0]), bias, space[float32](s, out)
}

// runMatMul runs MatMul, Gemm and their variants. MatMul has no attribute beta, and Gemm is a stack of one product.
func runMatMul(c *op.Call) error {
	p, err := productOf(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	switch c.In[0].DType {
	case ir.Float, ir.Float16, ir.BFloat16:
		return p.float(c)
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

func (p *product) float(c *op.Call) error {
	act, err := activationOf(c.Node)
	if err != nil {
		return err
	}
	s := &scratch{mem: c.Work}
	a, bias, out := p.layOut(s, c.In, c.Out[0])
	beta := c.Float("beta", 1)
	as, bs := places(p.batch, p.a.batch, p.a.strides), p.rightPlaces(c)
	products := make([]gemm.FloatProduct, len(as))
	for i := range products {
		f := &products[i]
		f.A = matrix(p.a, a, as[i])
		p.right(c, f, bs[i])
		f.C, f.Stride = out[i*p.M*p.N:][:p.M*p.N], p.N
		f.Epilogue.Beta, f.Epilogue.Activate = beta, act
		scaled(f, c.Float("alpha", 1))
		// A bias times 0 would make NaN of its infinities.
		if bias != nil && beta != 0 {
			f.Epilogue.Bias = broadcastMatrix(bias, c.In[2].Shape)
		}
		if r := c.Opt(3); r != nil {
			f.Epilogue.Residual = gemm.Rows(ir.View[float32](r)[i*p.M*p.N:][:p.M*p.N], p.N)
		}
	}
	if w := p.sparse(c); w != nil {
		spmm.Right(c.Pool, w, p.Shape, s.rest(), products...)
	} else {
		gemm.Float(c.Pool, p.Shape, s.rest(), products...)
	}
	store(c.Out[0], out)
	return nil
}

// rightPlaces returns for each product the offset of its matrix B, or its index among the prepacked ones.
func (p *product) rightPlaces(c *op.Call) []int {
	if c.State != nil {
		return places(p.batch, p.b.batch, op.Strides(p.b.batch))
	}
	return places(p.batch, p.b.batch, p.b.strides)
}

// right sets B, at one of the offsets of rightPlaces, unless it is a sparse matrix.
func (p *product) right(c *op.Call, f *gemm.FloatProduct, at int) {
	b := c.In[1]
	packed, _ := c.State.([]*gemm.PackedFloat)
	switch {
	case packed != nil:
		f.Packed = packed[at]
	case p.sparse(c) != nil:
	case c.Packed != nil:
		p.b.packed(f, c.Packed, at)
	case half(b.DType):
		// 16-bit floats are widened panel by panel, so that no float32 copy of B exists.
		f.Panels = p.b.panels(b, min(at, len(b.Data)/2))
	default:
		f.B = matrix(p.b, ir.View[float32](b), at)
	}
}

// scaled multiplies a product by alpha. In package gemm an Alpha of 0 means 1.
func scaled(f *gemm.FloatProduct, alpha float32) {
	f.Epilogue.Alpha = alpha
	if alpha == 0 {
		// A single zero with strides of 0 is a matrix of zeros.
		f.A = gemm.Matrix[float32]{Data: make([]float32, 1)}
	}
}

// plain multiplies other numeric types.
func plain[T gemm.Number](c *op.Call, p *product) {
	a, b, out := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
	bs := places(p.batch, p.b.batch, p.b.strides)
	for i, at := range places(p.batch, p.a.batch, p.a.strides) {
		gemm.Plain(c.Pool, p.Shape, matrix(p.a, a, at), matrix(p.b, b, bs[i]), out[i*p.M*p.N:][:p.M*p.N], p.N)
	}
	if alpha := T(c.Float("alpha", 1)); alpha != 1 {
		for i := range out {
			out[i] *= alpha
		}
	}
	if bias, beta := c.Opt(2), T(c.Float("beta", 1)); bias != nil && beta != 0 {
		addBias(out, p.M, p.N, broadcastMatrix(ir.View[T](bias), bias.Shape), beta)
	}
}

func addBias[T gemm.Number](out []T, rows, cols int, bias gemm.Matrix[T], beta T) {
	for i := range rows {
		for j := range cols {
			out[i*cols+j] += T(beta * bias.Data[i*bias.Row+j*bias.Col])
		}
	}
}
