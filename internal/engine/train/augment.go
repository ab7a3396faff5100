package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Pictures are samples of planes of height × width: tensors [N,C,H,W], or of another shape with attributes height and
// width. Each sample is changed in its own way, which follows from its index, the step and attribute seed.
func augments() []op.Op {
	return []op.Op{
		{Type: "AugmentShift", Shape: pictureShape, Run: func(c *op.Call) error { return augment(c, shift) }},
		{Type: "AugmentFlip", Shape: pictureShape, Run: func(c *op.Call) error { return augment(c, flip) }},
	}
}

// picture is the planes of one sample.
type picture struct{ height, width int }

func pictureShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float, ir.Double, ir.Uint8)
	if err != nil {
		return nil, err
	}
	if len(x.Shape) < 2 {
		return nil, fmt.Errorf("input x is %s, not a batch of pictures", x)
	}
	p, sample := pictureOf(n, x), op.Product(x.Shape[1:])
	if p.height < 1 || p.width < 1 || int64(p.height) > sample || int64(p.width) > sample || sample%int64(p.height*p.width) != 0 {
		return nil, fmt.Errorf("input x is %s, whose samples are no planes of %d×%d", x, p.height, p.width)
	}
	if s := n.Int("shift", 0); s < 0 {
		return nil, fmt.Errorf("attribute shift is %d, want 0 or more", s)
	}
	return []ir.Spec{x.Spec()}, stepInput(in, 1)
}

func pictureOf(n *op.Node, x *ir.Array) picture {
	k := len(x.Shape)
	return picture{int(n.Int("height", x.Shape[k-2])), int(n.Int("width", x.Shape[k-1]))}
}

// augment applies f to each sample: dst and src are its bytes, of size to an element.
func augment(c *op.Call, f func(n *op.Node, p picture, dst, src []byte, size int, random counter)) error {
	x, random, p := c.In[0], counterOf(c, 1), pictureOf(c.Node, c.In[0])
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

// shift moves a sample by up to attribute shift pixels down or up, and as many right or left. What comes in is 0.
func shift(n *op.Node, p picture, dst, src []byte, size int, random counter) {
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

// flip mirrors every second sample or so: left becomes right.
func flip(_ *op.Node, p picture, dst, src []byte, size int, random counter) {
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
