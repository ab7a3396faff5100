package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// integerConvOps is the convolution of quantized images whose channels are adjacent (NHWC), which the engine's fusions
// create:
//
//	IntegerConv(X, W, B, xs, xz, ws, wz, ys, yz) =
//	  QuantizeLinear(Conv(DequantizeLinear(X, xs, xz), DequantizeLinear(W, ws, wz), B), ys, yz)
//
// with scales and zero points per tensor, those of W also per output channel, and activation Relu or Clip. If X and W
// are matrices it is Gemm with transB: rows of X are pixels. Products are summed as integers and rounded once, as
// QLinearConv does.
func integerConvOps() []op.Op {
	return []op.Op{{
		Domain: "mcompress", Type: "IntegerConv", Since: 1,
		Shape: integerConvShape, Prepare: prepareIntegerConv, Work: integerConvWork, Run: runIntegerConv,
		States: []any{(*integerWeights)(nil)},
	}}
}

// IntegerConv's inputs.
const (
	icX = iota
	icW
	icB
	icXScale
	icXZero
	icWScale
	icWZero
	icYScale
	icYZero
)

// channelsLast is the shape NHWC of an NCHW one, and channelsFirst the other way round.
func channelsLast(s []int64) []int64  { return []int64{s[0], s[2], s[3], s[1]} }
func channelsFirst(s []int64) []int64 { return []int64{s[0], s[3], s[1], s[2]} }

func integerConvGeometry(n *op.Node, in []*ir.Array) (*conv.Geometry, error) {
	x, err := op.Arg(in, icX, "X")
	if err != nil {
		return nil, err
	}
	w, err := op.Arg(in, icW, "W")
	if err != nil {
		return nil, err
	}
	if x.Kind != ir.Dense || w.Kind != ir.Dense || !isByte(x.DType) || !isByte(w.DType) || len(x.Shape) != 4 &&
		len(x.Shape) != 2 || len(w.Shape) != len(x.Shape) {
		return nil, fmt.Errorf("inputs X and W are %s and %s, want images and weights of int8 or uint8", x, w)
	}
	image := x.Shape
	if len(image) == 2 {
		image = []int64{1, 1, image[0], image[1]}
	}
	return conv.GeometryOf(n, channelsFirst(image), kernelShape(w.Shape))
}

// kernelShape is the shape of weights of a convolution, or that of a matrix as one of them.
func kernelShape(w []int64) []int64 {
	if len(w) == 2 {
		return []int64{w[0], w[1], 1, 1}
	}
	return w
}

func integerConvShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	g, err := integerConvGeometry(n, in)
	if err != nil {
		return nil, err
	}
	if err := requireInputs(in, input{icXZero, "x_zero_point"}, input{icWScale, "w_scale"},
		input{icYZero, "y_zero_point"}); err != nil {
		return nil, err
	}
	channels := in[icW].Shape[0]
	perChannel := func(a *ir.Array, dt ir.DType) bool {
		return a == nil || a.DType == dt && (a.Elems() == 1 || a.Elems() == channels)
	}
	if !perChannel(in[icWScale], ir.Float) || !perChannel(in[icWZero], in[icW].DType) {
		return nil, fmt.Errorf("inputs w_scale and w_zero_point are %s and %s, want one value, or one for each of %d "+
			"channels", in[icWScale], in[icWZero], channels)
	}
	if b := in[icB]; b != nil && (b.DType != ir.Float || b.Elems() != channels) {
		return nil, fmt.Errorf("input B is %s, want one float for each of %d channels", b, channels)
	}
	if err := checkParams(in, icXScale, "x", in[icX].DType); err != nil {
		return nil, err
	}
	dt := in[icYZero].DType
	if !isByte(dt) {
		return nil, fmt.Errorf("input y_zero_point is %s, want int8 or uint8", in[icYZero])
	}
	if err := checkParams(in, icYScale, "y", dt); err != nil {
		return nil, err
	}
	s := ir.Spec{DType: dt, Shape: channelsLast(g.OutShape())}
	if len(in[icX].Shape) == 2 {
		s.Shape = s.Shape[2:]
	}
	return []ir.Spec{s}, s.Valid()
}

// integerWeights are the weights of a convolution in the form of its algorithm.
type integerWeights struct {
	sparse  *spmm.Matrix      // of mostly zeros and one group; nil for others
	quads   *quadWeights      // if the CPU multiplies bytes; nil for others
	packed  []*gemm.PackedInt // of each group; nil for a depthwise convolution
	windows []int16           // of a depthwise convolution, minus their zero points
	sums    []int32           // of the windows of each channel
}

func (w *integerWeights) bytes() int64 {
	n := int64(2*len(w.windows) + 4*len(w.sums))
	for _, p := range w.packed {
		n += p.Bytes()
	}
	if w.sparse != nil {
		n += w.sparse.Bytes()
	}
	if w.quads != nil {
		n += w.quads.bytes()
	}
	return n
}

func prepareIntegerConv(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	w := in[icW]
	if w == nil || n.IsFixed(icWZero) || len(w.Shape) != 4 && len(w.Shape) != 2 || !isByte(w.DType) {
		return nil, nil
	}
	// A copy, as W is replaced by its form as a convolution.
	in = slices.Clone(in)
	w = &ir.Array{DType: w.DType, Shape: kernelShape(w.Shape), Data: w.Data}
	in[icW] = w
	// The fastest form first: sparse products from 90 % zeros on (spmm.IntDensity), windows where they are if the CPU
	// multiplies bytes, and else panels for products with patches.
	made, err := arrangeSparse(n, w, in[icWZero], pool)
	if made == nil && err == nil {
		made, err = arrangeQuads(n, in)
	}
	if made == nil && err == nil {
		made, err = arrange(n, w, in[icWZero], pool)
	}
	if err != nil {
		return nil, err
	}
	return &op.Prepared{State: made, Bytes: made.bytes(), Drops: []int{icW}}, nil
}

// arrange arranges the weights: the channels of a tap become adjacent, as they are in the image.
func arrange(n *op.Node, w, zero *ir.Array, pool *op.Pool) (*integerWeights, error) {
	zeroPoints, err := zeros(zero)
	if err != nil {
		return nil, err
	}
	groups := max(int(n.Int("group", 1)), 1)
	channels, depth, taps := int(w.Shape[0]), int(w.Shape[1]), int(w.Shape[2]*w.Shape[3])
	// Depthwise: 16 channels at once instead of a product.
	if depth == 1 && channels == groups {
		return arrangeWindows(w, zeroPoints, channels, taps), nil
	}
	m := &integerWeights{packed: make([]*gemm.PackedInt, groups)}
	of, k := channels/groups, depth*taps
	pixels := make([]byte, of*k)
	for g := range m.packed {
		data := part(w.Data, g, of*k)
		for o := range of {
			// The bytes of a window are contiguous in the image, taps by channels.
			kernel.TransposeBytes(part(pixels, o, k), part(data, o, k), depth, taps)
		}
		m.packed[g] = gemm.PackInt(pool, gemm.Rows(pixels, k).T(), k, of, w.DType == ir.Int8)
	}
	return m, nil
}

// maybeSparse reports whether constant weights of this shape are multiplied as a sparse matrix if they have enough
// zeros.
func maybeSparse(n *op.Node, w *ir.Array) bool {
	return n.Int("group", 1) <= 1 && spmm.IntDensity.Eligible(int(w.Elems()))
}

// arrangeSparse is arrange of weights with enough zeros, and nil for others.
func arrangeSparse(n *op.Node, w, zero *ir.Array, pool *op.Pool) (*integerWeights, error) {
	zeroPoints, err := zeros(zero)
	if err != nil || !maybeSparse(n, w) {
		return nil, err
	}
	channels, k := int(w.Shape[0]), int(op.Product(w.Shape[1:]))
	m := &spmm.QuantizedMatrix{
		Data: w.Data, Signed: w.DType == ir.Int8, K: k, N: channels, Row: 1, Col: k, Zeros: make([]int32, channels),
	}
	for c := range m.Zeros {
		m.Zeros[c] = zeroAt(zeroPoints, c)
	}
	if s := packExact(m, pool); s != nil {
		return &integerWeights{sparse: s}, nil
	}
	return nil, nil
}

func arrangeWindows(w *ir.Array, zeroPoints []int32, channels, taps int) *integerWeights {
	even := (taps + 1) &^ 1
	m := &integerWeights{windows: make([]int16, kernel.DepthwiseWeights(channels, even)), sums: make([]int32, channels)}
	for c := range channels {
		zero := zeroAt(zeroPoints, c)
		for t, b := range part(w.Data, c, taps) {
			v := whole(b, w.DType == ir.Int8) - zero
			// Minus the zero point, which may need a bit more than a byte.
			m.windows[kernel.DepthwiseWeight(c, t, even)] = int16(v)
			m.sums[c] += v
		}
	}
	return m
}

// zeroAt is the zero point of channel i: there are none, one, or one per channel.
func zeroAt(zero []int32, i int) int32 {
	if len(zero) == 0 {
		return 0
	}
	return zero[i%len(zero)]
}

// epilogueBytes is the scratch memory for a scale, a bias and a first sum of each channel.
func epilogueBytes(channels int) int64 { return aligned(3 * 4 * int64(channels)) }

func integerConvWork(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := integerConvGeometry(n, in)
	if err != nil {
		return 0
	}
	size := epilogueBytes(g.Groups * g.OutC)
	// Of a depthwise convolution bands are all; others have a product, of dense weights or of sparse ones.
	if b := conv.PixelBandOf(g); b != nil {
		size += int64(min(workers, g.Batch*b.Bands())) * aligned(int64(b.Bytes()))
		return max(size, quadWork(n, g, workers))
	}
	work := gemm.IntWork(pixelProduct(g), g.Products(), workers, true, true)
	if n.IsConst(icW) && maybeSparse(n, in[icW]) {
		work = max(work, (&conv.SparsePixels{Geometry: g}).Work(workers))
	}
	return max(size+work, quadWork(n, g, workers))
}

// pixelProduct is the shape of the product of a group: rows are pixels, columns output channels.
func pixelProduct(g *conv.Geometry) gemm.Shape {
	return gemm.Shape{M: g.OutArea(), N: g.OutC, K: g.Depth()}
}

// An integerRun is one call of IntegerConv.
type integerRun struct {
	*conv.Geometry
	x, y   []byte
	signed bool // X is int8
	xZero  int32
	wZero  []int32
	toY    kernel.Requantization
	first  []int32 // scratch of a depthwise convolution
}

func runIntegerConv(c *op.Call) error {
	g, err := integerConvGeometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	weights, _ := c.State.(*integerWeights)
	if weights == nil {
		// Weights of a run, as streamed ones, are arranged again; at most an int16 and a sum each.
		size := 4 * c.In[icW].Bytes()
		if err := c.Account.Take(size); err != nil {
			return err
		}
		defer c.Account.Release(size)
		w := &ir.Array{DType: c.In[icW].DType, Shape: kernelShape(c.In[icW].Shape), Data: c.In[icW].Data}
		if weights, err = arrange(c.Node, w, c.Opt(icWZero), c.Pool); err != nil {
			return err
		}
	}
	if weights.quads != nil {
		newQuadRun(g, weights.quads, c).run(c.Pool)
		return nil
	}
	r := &integerRun{Geometry: g, x: c.In[icX].Data, y: c.Out[0].Data, signed: c.In[icX].DType == ir.Int8}
	if err := r.epilogue(c); err != nil {
		return err
	}
	work := c.Work[epilogueBytes(len(r.toY.Scale)):]
	switch b := conv.PixelBandOf(g); {
	case weights.sparse != nil:
		r.convolve(c.Pool, weights.sparse, work)
	case b != nil:
		r.slide(c.Pool, b, weights, work)
	default:
		r.multiply(c.Pool, weights, work)
	}
	return nil
}

// epilogue computes the parameters of the rounding.
func (r *integerRun) epilogue(c *op.Call) (err error) {
	if r.wZero, err = zeros(c.Opt(icWZero)); err != nil {
		return err
	}
	n := r.Groups * r.OutC
	all := kernel.Words[float32](c.Work[:3*4*n])
	r.first = kernel.Words[int32](c.Work[2*4*n : 3*4*n])
	r.xZero, r.toY, err = requantization(c.Node, c.In, all[:n], all[n:2*n])
	return err
}

// requantization is the zero point of X and the rounding to Y, whose parameters of each channel are stored in scale and
// bias.
func requantization(n *op.Node, in []*ir.Array, scale, bias []float32) (xZero int32, q kernel.Requantization,
	err error) {
	x, err := paramsAt(in, icXScale, in[icXZero].DType)
	if err != nil {
		return 0, q, err
	}
	y, err := paramsAt(in, icYScale, in[icYZero].DType)
	if err != nil {
		return 0, q, err
	}
	scales := ir.View[float32](in[icWScale])
	// In float64, and rounded once for each channel.
	ratio := float64(x.scale) / float64(y.scale)
	for i := range scale {
		scale[i] = float32(ratio * float64(scales[i%len(scales)]))
	}
	clear(bias)
	if b := op.Opt(in, icB); b != nil {
		for i, v := range ir.View[float32](b) {
			// In units of Y's scale, as the sums are after they are multiplied.
			bias[i] = v / y.scale
		}
	}
	return x.zero, kernel.Requantization{Scale: scale, Bias: bias, Zero: y.zero, Levels: y.levels(n)}, nil
}

// levels are the quantized values that the fused activation leaves: it is monotone.
func (p params) levels(n *op.Node) kernel.IntRange {
	levels := rangeOfType(p.dt)
	bound := func(v float32) int32 {
		var b [1]byte
		p.quantize(b[:], []float32{v})
		return whole(b[0], p.dt == ir.Int8)
	}
	switch limits := n.Floats("activation_params"); n.Text("activation", "") {
	case "Relu":
		levels.Lo = bound(0)
	case "Clip":
		// ONNX Clip with bounds in the wrong order gives the upper one.
		levels.Lo, levels.Hi = bound(min(limits[0], limits[1])), bound(limits[1])
	}
	return levels
}

// multiply computes matrix products of the patches and the weights.
func (r *integerRun) multiply(pool *op.Pool, w *integerWeights, work []byte) {
	products := make([]gemm.IntProduct, r.Products())
	in, channels := r.Channels(), r.Groups*r.OutC
	zero := []int32{r.xZero}
	for i := range products {
		image, group := part(r.x, i/r.Groups, r.InArea()*in), i%r.Groups
		y := part(r.y, i/r.Groups, r.OutArea()*channels)
		// Rows are pixels and columns output channels, so that sums of a pixel are written where its channels are adjacent.
		p := gemm.IntProduct{Packed: w.packed[group], ASigned: r.signed, AZero: zero,
			BZero: partOf(r.wZero, group, r.OutC)}
		if r.Pointwise() {
			p.A = gemm.Rows(image[group*r.InC:], in)
		} else {
			// Padding is the zero point, whose product with any weight is corrected to 0.
			p.Patches = func(dst []byte, row, from int) { r.PixelPatch(dst, image, group, row, from, byte(r.xZero)) }
		}
		at := group * r.OutC
		p.Quantized, p.Requantization = gemm.Rows(y[at:], channels), r.toY.Part(at, at+r.OutC)
		products[i] = p
	}
	gemm.Int(pool, pixelProduct(r.Geometry), work, products...)
}

// convolve convolves with sparse weights.
func (r *integerRun) convolve(pool *op.Pool, w *spmm.Matrix, work []byte) {
	s := &conv.SparsePixels{Geometry: r.Geometry, Weights: w, Signed: r.signed, Zero: r.xZero}
	s.Run(pool, work, r.x, func(sums []float32, pixel int) {
		// In place: floats that are exact integers become int32 of the same size.
		whole := kernel.Words[int32](kernel.Bytes(sums))
		kernel.Int32FromFloat(whole, sums)
		kernel.Requantize(r.y[pixel*r.OutC:], r.OutC, whole, r.toY)
	})
}

// slide computes a depthwise convolution, by bands.
func (r *integerRun) slide(pool *op.Pool, b *conv.PixelBand, w *integerWeights, work []byte) {
	for c, sum := range w.sums {
		// The zero point of X times the weights, once for all positions.
		r.first[c] = -r.xZero * sum
	}
	window := &kernel.ByteWindow{At: b.Taps(2), W: w.windows, First: r.first, Signed: r.signed, Q: r.toY}
	slotSize := aligned(int64(b.Bytes()))
	pool.Slots(b.Batch*b.Bands(), func(task, slot int) {
		band := work[int64(slot)*slotSize:][:b.Bytes()]
		x, y := part(r.x, task/b.Bands(), b.InArea()*b.Groups), part(r.y, task/b.Bands(), b.OutArea()*b.Groups)
		from, to := b.Fill(band, x, task%b.Bands(), byte(r.xZero))
		for row := range to - from {
			x, positions, step := b.Row(band, row)
			window.Slide(part(y, from+row, positions*b.Groups), x, positions, step)
		}
	})
}
