package conv

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/activation"
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// convolutions are Conv, whose versions differ in types only, and its fused form:
//
//	FusedConv(X, W, B, Z) = activation(Conv(X, W, B) + Z)
//
// Z, of the output's shape, and B are optional. Attributes activation and activation_params are those of package
// activation.
func convolutions() []op.Op {
	row := op.Op{
		Type: "Conv", Since: 1, Shape: convShape,
		Prepare: prepareConv, Decodes: decodes, States: convStates(), ChannelsLast: layouts, Work: convWork,
		Run: convTypes().run,
	}
	fused := row
	fused.Domain, fused.Type = "mcompress", "FusedConv"
	fused.Shape, fused.Run = fusedShape, byType{ir.Float: convolve}.run
	fused.InPlace = []int{3}
	runtimes := fused // ONNX Runtime's own, as in its optimized models
	runtimes.Domain = "com.microsoft"
	return append(wide(row, fused, runtimes), mixedConv())
}

// mixedConv is
//
//	Y = MixedConv(X, W, B)
//
// with the attributes of Conv. X and Y may be Float16, with the attributes of package half; W and B are float32.
func mixedConv() op.Op {
	return op.Op{Domain: "mcompress", Type: "MixedConv", Since: 1, Shape: mixedShape, Prepare: prepareConv,
		Decodes: decodes, States: convStates(), Work: mixedWork, Run: convolve}
}

func mixedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	in = slices.Clone(in)
	if x := op.Opt(in, 0); x != nil && x.DType == ir.Float16 {
		in[0] = &ir.Array{Kind: x.Kind, DType: ir.Float, Shape: x.Shape}
	}
	specs, err := convShape(n, in)
	if err != nil {
		return nil, err
	}
	if in[0].DType != ir.Float {
		return nil, fmt.Errorf("input X is %s, want %s or %s", in[0], ir.Float, ir.Float16)
	}
	return half.Stored(n, specs)
}

func mixedWork(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := geometry(n, in)
	if err != nil {
		return 0
	}
	return g.work(n, in[1], workers, Halves{X: in[0].DType == ir.Float16, Y: half.IsStored(n)})
}

func convTypes() byType {
	return byType{ir.Float: convolve, ir.Double: func(c *op.Call) error {
		g, err := geometry(c.Node, c.In)
		if err == nil && c.Out[0].Elems() > 0 {
			direct(c, g, axpy[float64])
		}
		return err
	}}
}

func convShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := convTypes().image(in)
	if err != nil {
		return nil, err
	}
	g, err := geometry(n, in)
	if err != nil {
		return nil, err
	}
	if err := sameType(in, "X", "W", "B", "Z"); err != nil {
		return nil, err
	}
	if b := op.Opt(in, 2); b != nil && (len(b.Shape) != 1 || b.Shape[0] != in[1].Shape[0]) {
		return nil, fmt.Errorf("input B is %s, want one value for each of %d output channels", b, in[1].Shape[0])
	}
	return like(x, g.OutShape()...)
}

func fusedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	specs, err := convShape(n, in)
	if err != nil {
		return nil, err
	}
	if in[0].DType == ir.Double {
		return nil, fmt.Errorf("input X is %s, the fused operator supports float and 16-bit floats", in[0])
	}
	if z := op.Opt(in, 3); z != nil && !slices.Equal(z.Shape, specs[0].Shape) {
		return nil, fmt.Errorf("input Z is %s, want the output's shape %v", z, specs[0].Shape)
	}
	_, err = activation.Of(n.Text("activation", ""), n.Floats("activation_params"))
	return specs, err
}

// geometry is that of inputs X and W.
func geometry(n *op.Node, in []*ir.Array) (*Geometry, error) {
	w, err := op.Arg(in, 1, "W")
	if err != nil {
		return nil, err
	}
	return GeometryOf(n, in[0].Shape, w.Shape)
}

// sameType reports inputs whose type differs from that of the first.
func sameType(in []*ir.Array, names ...string) error {
	for i, name := range names {
		if a := op.Opt(in, i); a != nil && (a.Kind != ir.Dense || a.DType != in[0].DType) {
			return fmt.Errorf("input %s is %s, want the type of %s, %s", name, a, names[0], in[0].DType)
		}
	}
	return nil
}

func convWork(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := geometry(n, in)
	if err != nil || in[0].DType == ir.Double {
		return 0
	}
	return g.work(n, in[1], workers, Halves{})
}

// work is the size of convolve's scratch memory, for weights of w's type.
func (g *Geometry) work(n *op.Node, w *ir.Array, workers int, h Halves) int64 {
	work := int64(0)
	switch {
	case n.IsConst(1) && winogradFits(n, w):
		work = winogradOf(g, nil, workers).work(workers)
	// Which one is known when the weights are: sparse ones are multiplied with patches.
	case n.IsFixed(1) && winogradFits(n, w):
		work = max(g.transformedWork(workers), g.productWork(workers, h))
	case n.IsConst(1) && packedFits(n, w):
		work = g.packedWork(workers, h)
	default:
		work = g.computedWork(workers, h)
	}
	// Scratch memory must not depend on the values of weights, so that a plan without them is that of a run.
	if n.IsConst(1) && maybeSparse(n, w) {
		work = max(work, g.sparseWork(workers))
	}
	return work
}

// A job is the arguments of a convolution: y = activate(convolution of x with w + bias), plus the previous contents of
// y if add is set, which requires that y is float32.
type job struct {
	x, y     Images[float32]
	w, bias  []float32
	add      bool
	activate func(row []float32) // nil for none
	bounds   *limits             // nil unless activate does nothing but bound sums

	lastX, lastY bool // x, and y, has channels last
}

type limits struct{ lo, hi float32 }

// bounded returns bounds of the sums, for kernels that apply them, and the activation that is left, nil for none.
func (j *job) bounded() (b limits, activate func(row []float32)) {
	if j.bounds != nil {
		return *j.bounds, nil
	}
	return limits{float32(math.Inf(-1)), float32(math.Inf(1))}, j.activate
}

// convolve is Conv and FusedConv of float32.
func convolve(c *op.Call) error {
	if c.Out[0].Elems() == 0 {
		return nil
	}
	l, err := invariantsOf(c)
	if err != nil {
		return err
	}
	j := job{x: ImagesOf[float32](c.In[0], false), w: ir.View[float32](c.In[1]),
		y: ImagesOf[float32](c.Out[0], c.Bool("exceeds", false))}
	j.lastX, j.lastY = c.LastIn, c.LastOut
	j.activate, j.bounds = l.activate, l.bounds
	if b := c.Opt(2); b != nil {
		j.bias = ir.View[float32](b)
	}
	// The residual is the initial contents of the sums.
	if z := c.Opt(3); z != nil {
		copy(j.y.Values, ir.View[float32](z)) // does nothing if they share memory
		j.add = true
	}
	l.run(c.Pool, c.Work, j)
	return nil
}

// multiply multiplies the weights with the patches.
func (g *Geometry) multiply(p *op.Pool, work []byte, j job) {
	gemm.Float(p, g.Product(), work[g.TableSize():], g.products(work, j)...)
}

// products are those of the weights and the patches, whose table is in work.
func (g *Geometry) products(work []byte, j job) []gemm.FloatProduct {
	patches := PatchesOf(g, work[:g.TableSize()])
	products := make([]gemm.FloatProduct, g.Products())
	for i := range products {
		x, y := j.x.from(i*g.InC*g.InArea()), j.y.from(i*g.OutC*g.OutArea())
		q := gemm.FloatProduct{C: y.Values, Stride: g.OutArea(), Accumulate: j.add,
			Epilogue: gemm.Epilogue{Activate: j.activate}}
		if len(j.w) > 0 {
			q.A = gemm.Rows(Weights(g, j.w, i), g.Depth())
		}
		if y.isHalf() {
			q.Store = func(row []float32, m, n int) { put(y, m*g.OutArea()+n, row) }
		}
		switch {
		case g.Pointwise() && x.isHalf():
			q.Panels = rowPanels(x.Halves, g.OutArea())
		case g.Pointwise():
			q.B = gemm.Rows(x.Values, g.OutArea())
		default:
			q.Panels = patches.Of(x)
		}
		if j.bias != nil {
			q.Epilogue.Bias = gemm.Matrix[float32]{Data: part(j.bias, i%g.Groups, g.OutC), Row: 1}
		}
		products[i] = q
	}
	return products
}

// rowPanels are the panels of a row-major matrix of Float16 elements.
func rowPanels(x []uint16, stride int) gemm.Panels[float32] {
	return func(dst []float32, k0, k1, n0, n1 int) {
		kernel.PackHalves(dst, x[k0*stride+n0:], k1-k0, panel, stride, 0, n1-n0, 1, false)
	}
}
