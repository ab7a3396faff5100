package conv

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// deformable is DeformConv: a convolution whose sampling positions are shifted by a tensor of offsets (Dai et al.,
// "Deformable Convolutional Networks", 2017), and weighted by a mask (Zhu et al., "Deformable ConvNets v2", 2018).
func deformable() []op.Op {
	return wide(op.Op{
		Type: "DeformConv", Since: 19, Shape: deformShape,
		Work: deformWork, Run: deformTypes().run,
	})
}

func deformTypes() byType {
	return byType{ir.Float: deformFloat, ir.Double: deformDouble}
}

func deformShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := deformTypes().image(in)
	if err != nil {
		return nil, err
	}
	g, err := geometry(n, in)
	if err != nil {
		return nil, err
	}
	if len(g.in) > maxAxes {
		return nil, fmt.Errorf("input X is %s and has more than %d spatial axes", x, maxAxes)
	}
	if err := sameType(in, "X", "W", "offset", "B", "mask"); err != nil {
		return nil, err
	}
	channels := int64(g.Groups * g.OutC)
	if b := op.Opt(in, 3); b != nil && (len(b.Shape) != 1 || b.Shape[0] != channels) {
		return nil, fmt.Errorf("input B is %s, want one value for each of %d output channels", b, channels)
	}
	if err := g.checkOffsets(n, in); err != nil {
		return nil, err
	}
	return like(x, g.OutShape()...)
}

// checkOffsets checks the shapes of offset and mask.
func (g *Geometry) checkOffsets(n *op.Node, in []*ir.Array) error {
	groups := n.Int("offset_group", 1)
	if groups < 1 || in[0].Shape[1]%groups != 0 {
		return fmt.Errorf("offset_group is %d, want a divisor of the %d channels of X", groups, in[0].Shape[1])
	}
	offset, err := op.Arg(in, 2, "offset")
	if err != nil {
		return err
	}
	for _, a := range []struct {
		name string
		*ir.Array
		each int
	}{{"offset", offset, len(g.in)}, {"mask", op.Opt(in, 4), 1}} {
		want := g.OutShape()
		want[1] = groups * int64(g.kernelSize()*a.each)
		if a.Array != nil && !slices.Equal(a.Shape, want) {
			return fmt.Errorf("input %s is %s, want shape %v", a.name, a.Array, want)
		}
	}
	return nil
}

func deformWork(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := geometry(n, in)
	if err != nil {
		return 0
	}
	if in[0].DType == ir.Double {
		return aligned(8 * int64(g.Depth()) * int64(g.OutArea()))
	}
	return gemm.FloatWork(g.Product(), g.Products(), workers, false)
}

func deformFloat(c *op.Call) error {
	g, err := geometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	w, y := ir.View[float32](c.In[1]), ir.View[float32](c.Out[0])
	products := make([]gemm.FloatProduct, g.Products())
	for i := range products {
		p := &products[i]
		p.A, p.Panels = gemm.Rows(Weights(g, w, i), g.Depth()), deformedPatches[float32](c, g, i)
		p.C, p.Stride = Output(g, y, i), g.OutArea()
		if b := c.Opt(3); b != nil {
			p.Epilogue.Bias = gemm.Matrix[float32]{Data: part(ir.View[float32](b), i%g.Groups, g.OutC), Row: 1}
		}
	}
	gemm.Float(c.Pool, g.Product(), c.Work, products...)
	return nil
}

// deformDouble computes all patches of a product at once.
func deformDouble(c *op.Call) error {
	g, err := geometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	w, y := ir.View[float64](c.In[1]), ir.View[float64](c.Out[0])
	buf := scratch[float64](c.Work)
	patches := buf.take(g.Depth() * g.OutArea())
	for i := range g.Products() {
		fillPatches := deformedPatches[float64](c, g, i)
		c.Pool.For(ceilDiv(g.OutArea(), panel), func(j int) {
			n0 := j * panel
			n1 := min(n0+panel, g.OutArea())
			block := make([]float64, g.Depth()*panel)
			fillPatches(block, 0, g.Depth(), n0, n1)
			for k := range g.Depth() {
				copy(patches[k*g.OutArea()+n0:], part(block, k, panel)[:n1-n0])
			}
		})
		to := Output(g, y, i)
		gemm.Plain(c.Pool, g.Product(), gemm.Rows(Weights(g, w, i), g.Depth()), gemm.Rows(patches, g.OutArea()), to,
			g.OutArea())
		if b := c.Opt(3); b != nil {
			for m, v := range part(ir.View[float64](b), i%g.Groups, g.OutC) {
				addTo(part(to, m, g.OutArea()), v)
			}
		}
	}
	return nil
}

func addTo[T float](y []T, v T) {
	for i := range y {
		y[i] += v
	}
}

// deformedPatches samples the patches of product i: see Patches.
func deformedPatches[T float](c *op.Call, g *Geometry, i int) gemm.Panels[T] {
	d := &deformedImage[T]{Geometry: g, x: Input(g, ir.View[T](c.In[0]), i), first: i % g.Groups * g.InC}
	d.perGroup = g.Groups * g.InC / int(c.Int("offset_group", 1))
	image := i / g.Groups
	offset := ir.View[T](c.In[2])
	d.offset = part(offset, image, len(offset)/g.Batch)
	if a := c.Opt(4); a != nil {
		mask := ir.View[T](a)
		d.mask = part(mask, image, len(mask)/g.Batch)
	}
	return d.fill
}

// A deformedImage is an image whose patches have offsets.
type deformedImage[T float] struct {
	*Geometry
	x            []T
	offset, mask []T // of the image
	perGroup     int // channels that share offsets
	first        int // channel of the image that is channel 0 here
}

func (d *deformedImage[T]) fill(dst []T, k0, k1, n0, n1 int) {
	var s sampler[T]
	taken := d.kernelSize()
	// Row k of the patches is channel k/taken and tap k%taken, so c0 to c1-1 are the channels of tap t between k0 and
	// k1. Channels are the inner loop, as all of an offset group have the same sampling position.
	for t := range taken {
		c0, c1 := max(ceilDiv(k0-t, taken), 0), ceilDiv(k1-t, taken)
		for n := n0; n < n1; n++ {
			group, weight := -1, T(0)
			for c := c0; c < c1; c++ {
				// Groups of offsets and of the convolution are independent: the channels of one product may have several of the
				// former.
				if own := (d.first + c) / d.perGroup; own != group {
					group = own
					weight = d.locate(&s, group*taken+t, t, n)
				}
				dst[(c*taken+t-k0)*panel+n-n0] = weight * s.sum(part(d.x, c, d.inLen()))
			}
		}
	}
}

// locate sets the sampling position of kernel tap t for output n, and its weight from the mask. at is the tap's index
// in offset and mask, which hold all taps of one group of channels before those of the next.
func (d *deformedImage[T]) locate(s *sampler[T], at, t, n int) T {
	s.reset()
	places, axes := d.OutArea(), len(d.in)
	var spot, tap [maxAxes]int
	for i, rest, k := axes-1, n, t; i >= 0; i-- {
		spot[i], rest = rest%d.out[i], rest/d.out[i]
		tap[i], k = k%d.kernel[i], k/d.kernel[i]
	}
	for i := range axes {
		p := T(spot[i]*d.stride[i]-d.begin[i]+tap[i]*d.dilation[i]) + d.offset[(at*axes+i)*places+n]
		if !(p > -most && p < most) {
			p = -most // NaN, or far outside
		}
		low := math.Floor(float64(p))
		up := p - T(low)
		// Elements outside are 0, one by one: bilinear sampling at the border mixes them with those inside.
		between := [2]int{within(int(low), d.in[i]), within(int(low)+1, d.in[i])}
		s.axis(d.in[i], between[:], []T{1 - up, up})
	}
	if d.mask == nil {
		return 1
	}
	return d.mask[at*places+n]
}

// within is p, or -1 if it is outside of the axis.
func within(p, length int) int {
	if p < 0 || p >= length {
		return -1
	}
	return p
}

// maxAxes bounds the spatial axes of a deformable convolution.
const maxAxes = 8
