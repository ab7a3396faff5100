package conv

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/activation"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// quantizedConvs is the convolution with 8-bit input and output that the engine's fusions create:
//
//	QuantizedConv(X, W, B, xs, xz, ys, yz) = QuantizeLinear(FusedConv(DequantizeLinear(X, xs, xz), W, B), ys, yz)
//
// with scalar scales and zero points. It is bit-identical to the three operators. Only a band of rows at a time is
// converted to floats, so that an image takes one byte per element.
func quantizedConvs() []op.Op {
	return []op.Op{{
		Domain: "mcompress", Type: "QuantizedConv", Since: 1,
		Shape: quantizedConvShape, Prepare: prepareConv, Decodes: decodes, States: convStates(),
		Work: quantizedConvWork, Run: runQuantizedConv,
	}}
}

// bandBytes is the maximum size of a band's floats, if four rows fit: they stay in the cache.
const bandBytes = 512 << 10

func quantizedConvShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	for i, name := range []string{"X", "W", "", "x_scale", "x_zero_point", "y_scale", "y_zero_point"} {
		a := op.Opt(in, i)
		switch {
		case name == "":
		case a == nil || a.Kind != ir.Dense:
			return nil, fmt.Errorf("input %s is %s, want a tensor", name, a)
		case i > 2 && a.Elems() != 1:
			return nil, fmt.Errorf("input %s is %s, want a scalar", name, a)
		}
	}
	if x, y := in[0].DType, in[6].DType; x != in[4].DType || !isByteType(x) || !isByteType(y) ||
		in[3].DType != ir.Float || in[5].DType != ir.Float {
		return nil, fmt.Errorf("inputs X %s, x_scale %s, x_zero_point %s, y_scale %s and y_zero_point %s are not 8-bit "+
			"values with scales and zero points", in[0], in[3], in[4], in[5], in[6])
	}
	values := slices.Clone(in[:3])
	values[0] = &ir.Array{DType: ir.Float, Shape: in[0].Shape}
	specs, err := convShape(n, values)
	if err != nil {
		return nil, err
	}
	if len(in[0].Shape) != 4 {
		return nil, fmt.Errorf("input X is %s, want images", in[0])
	}
	specs[0].DType = in[6].DType
	_, err = activation.Of(n.Text("activation", ""), n.Floats("activation_params"))
	return specs, err
}

func isByteType(dt ir.DType) bool { return dt == ir.Int8 || dt == ir.Uint8 }

// A band is some rows of the output of one image, and the input rows that they depend on.
type band struct {
	*Geometry      // of these rows alone
	first, row int // of the input, and of the output
}

// bands splits an image so that its floats need little memory. Bands start at multiples of four rows, like Winograd's
// tiles.
func (g *Geometry) bands() []band {
	// A band of padding only has no input rows, from which a geometry could be made: such images are whole.
	if g.begin[0] >= g.span(0) || g.end[0] >= g.span(0) { // some rows would depend on padding only
		return []band{{&Geometry{g.window, 1, g.Groups, g.InC, g.OutC}, 0, 0}}
	}
	rows := max(bandBytes/(4*max(g.Groups*(g.InC*g.stride[0]*g.in[1]+g.OutC*g.out[1]), 1)), 1)
	rows = (rows + 3) &^ 3
	var all []band
	for row := 0; row < g.out[0]; row += rows {
		all = append(all, g.band(row, min(row+rows, g.out[0])))
	}
	return all
}

// band is the one of rows from to to-1.
func (g *Geometry) band(from, to int) band {
	first, last := from*g.stride[0]-g.begin[0], (to-1)*g.stride[0]-g.begin[0]+g.span(0)
	// Rows outside of the image become the band's own padding, so that it is an image like any other and its sums are
	// those of the whole one.
	top, bottom := max(first, 0), min(last, g.in[0])
	w := *g.window
	w.in, w.out = []int{bottom - top, g.in[1]}, []int{to - from, g.out[1]}
	w.begin, w.end = []int{top - first, g.begin[1]}, []int{last - bottom, g.end[1]}
	return band{&Geometry{&w, 1, g.Groups, g.InC, g.OutC}, top, from}
}

// floats is the number of elements of the band's input and output.
func (b band) floats() (x, y int) {
	return b.Groups * b.InC * b.inLen(), b.Groups * b.OutC * b.OutArea()
}

func quantizedConvWork(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := geometry(n, in)
	if err != nil {
		return 0
	}
	most := int64(0)
	for _, b := range g.bands() {
		x, y := b.floats()
		most = max(most, aligned(4*int64(x))+aligned(4*int64(y))+b.work(n, in[1], workers, Halves{}))
	}
	return most
}

// A codec dequantizes and quantizes.
type codec struct {
	signed bool
	scale  float32
	zero   int32
	typ    kernel.IntRange
}

func codecOf(scale, zero *ir.Array) codec {
	c := codec{signed: zero.DType == ir.Int8, scale: ir.View[float32](scale)[0], zero: int32(zero.Data[0]),
		typ: kernel.IntRange{Lo: 0, Hi: 255}}
	if c.signed {
		c.zero, c.typ = int32(int8(zero.Data[0])), kernel.IntRange{Lo: -128, Hi: 127}
	}
	return c
}

func runQuantizedConv(c *op.Call) error {
	g, err := geometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	j := job{w: ir.View[float32](c.In[1])}
	if j.activate, err = activation.Of(c.Text("activation", ""), c.Floats("activation_params")); err != nil {
		return err
	}
	if b := c.Opt(2); b != nil {
		j.bias = ir.View[float32](b)
	}
	from, to := codecOf(c.In[3], c.In[4]), codecOf(c.In[5], c.In[6])
	for image := range g.Batch {
		x, y := part(c.In[0].Data, image, g.Groups*g.InC*g.InArea()),
			part(c.Out[0].Data, image, g.Groups*g.OutC*g.OutArea())
		for _, b := range g.bands() {
			b.run(c, j, x, y, from, to)
		}
	}
	return nil
}

// run computes the band's rows of an image's quantized output y from quantized input x.
func (b band) run(c *op.Call, j job, x, y []byte, from, to codec) {
	buf := scratch[float32](c.Work)
	nx, ny := b.floats()
	in32, out32 := buf.take(nx), buf.take(ny)
	j.x, j.y = Images[float32]{Values: in32}, Images[float32]{Values: out32}
	in, area := b.inLen(), len(x)/(b.Groups*b.InC)
	c.Pool.Rows(b.Groups*b.InC, 1+quantizeGrain/max(in, 1), func(lo, hi int) {
		for ch := lo; ch < hi; ch++ {
			kernel.Dequantize(part(in32, ch, in), part(x, ch, area)[b.first*b.in[1]:][:in], from.signed, from.scale,
				from.zero)
		}
	})
	// The algorithm of the band's geometry, which must be one whose scratch memory quantizedConvWork counted.
	b.algorithm(c)(c.Pool, buf, j)
	out, places := b.OutArea(), len(y)/(b.Groups*b.OutC)
	c.Pool.Rows(b.Groups*b.OutC, 1+quantizeGrain/max(out, 1), func(lo, hi int) {
		for ch := lo; ch < hi; ch++ {
			kernel.Quantize(part(y, ch, places)[b.row*b.out[1]:][:out], part(out32, ch, out), to.scale, to.zero, to.typ)
		}
	})
}

// quantizeGrain is the minimum number of values per task.
const quantizeGrain = 1 << 14
