package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// augments returns the augmentations. Images are samples of planes of height × width: tensors [N,C,H,W], or of another shape with
// attributes height and width. Each sample is changed randomly, depending on its index, the step and attribute seed.
func augments() []op.Op {
	return []op.Op{
		{Type: "AugmentShift", Shape: imageShape, Run: func(c *op.Call) error { return augment(c, shift) }},
		{Type: "AugmentFlip", Shape: imageShape, Run: func(c *op.Call) error { return augment(c, flip) }},
	}
}

// image is the plane size of one sample.
type image struct{ height, width int }

func imageShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float, ir.Double, ir.Uint8)
	if err != nil {
		return nil, err
	}
	if len(x.Shape) < 2 {
		return nil, fmt.Errorf("input x is %s, not a batch of images", x)
	}
	p, sample := imageOf(n, x), op.Product(x.Shape[1:])
	if p.height < 1 || p.width < 1 || int64(p.height) > sample || int64(p.width) > sample || sample%int64(p.height*p.width) != 0 {
		return nil, fmt.Errorf("input x is %s, whose samples are not planes of %d×%d", x, p.height, p.width)
	}
	if s := n.Int("shift", 0); s < 0 {
		return nil, fmt.Errorf("attribute shift is %d, want 0 or more", s)
	}
	return []ir.Spec{x.Spec()}, stepInput(in, 1)
}

func imageOf(n *op.Node, x *ir.Array) image {
	k := len(x.Shape)
	return image{int(n.Int("height", x.Shape[k-2])), int(n.Int("width", x.Shape[k-1]))}
}

// augment applies f to each sample: dst and src are its bytes, size bytes per element.
func augment(c *op.Call, f func(n *op.Node, p image, dst, src []byte, size int, random counter)) error {
	x, random, p := c.In[0], counterOf(c, 1), imageOf(c.Node, c.In[0])
	if len(x.Data) == 0 {
		return nil
	}
	sample := len(x.Data) / int(x.Shape[0])
	size := sample / int(op.Product(x.Shape[1:]))
	c.Pool.Rows(int(x.Shape[0]), 4*piece/sample, func(from, to int) {
		for i := from; i < to; i++ {
			at := i * sample
			f(c.Node, p, c.Out[0].Data[at:at+sample], x.Data[at:at+sample], size, counter(random.at(uint64(i))))
		}
	})
	return nil
}

// shift translates a sample by up to attribute shift pixels vertically and horizontally. New pixels are 0.
func shift(n *op.Node, p image, dst, src []byte, size int, random counter) {
	most := int(min(n.Int("shift", 0), int64(max(p.height, p.width))))
	down, right := random.below(0, 2*most+1)-most, random.below(1, 2*most+1)-most
	clear(dst)
	line := p.width * size
	kept := max(p.width-max(right, -right), 0) * size
	to, from := max(right, 0)*size, max(-right, 0)*size
	for at := 0; at < len(src) && kept > 0; at += p.height * line {
		for y := max(down, 0); y < min(p.height, p.height+down); y++ {
			copy(dst[at+y*line+to:][:kept], src[at+(y-down)*line+from:])
		}
	}
}

// flip mirrors a sample horizontally, with probability ½.
func flip(_ *op.Node, p image, dst, src []byte, size int, random counter) {
	if random.below(0, 2) == 0 {
		copy(dst, src)
		return
	}
	line := p.width * size
	for at := 0; at < len(src); at += line {
		for x := 0; x < line; x += size {
			copy(dst[at+x:at+x+size], src[at+line-size-x:])
		}
	}
}
