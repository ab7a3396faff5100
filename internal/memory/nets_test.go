package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// A net is the blocks of a run of a network: each node's output lives until its last consumer, and scratch
// while the node runs.
type net struct {
	blocks []Block
	step   int
}

// node adds a node that consumes these values, and returns its output.
func (n *net) node(bytes, scratch int64, reads ...int) int {
	for _, v := range reads {
		n.blocks[v].Last = n.step
	}
	if scratch > 0 {
		n.blocks = append(n.blocks, Block{fmt.Sprintf("s%d", n.step), Scratch, scratch, n.step, n.step})
	}
	n.blocks = append(n.blocks, Block{fmt.Sprintf("v%d", n.step), Activation, bytes, n.step, n.step})
	n.step++
	return len(n.blocks) - 1
}

// conv adds a convolution of an image of c channels; its scratch is the unfolded image (im2col).
func (n *net) conv(c, side, kernel int64, reads ...int) int {
	var scratch int64
	if kernel > 1 {
		scratch = 4 * c * kernel * kernel * side * 8
	}
	return n.node(4*c*side*side, scratch, reads...)
}

func chain(width, depth int64) []Block {
	n := &net{}
	v := n.conv(3, 224, 0)
	c, side := width, int64(224)
	for range depth {
		v = n.conv(c, side, 3, v)
		v = n.node(n.blocks[v].Bytes, 0, v)
		if side > 7 {
			side /= 2
			c = min(2*c, 512)
			v = n.node(4*c*side*side, 0, v)
		}
	}
	n.node(4000, 0, v)
	return n.blocks
}

func residual(width, stages, depth int64) []Block {
	n := &net{}
	c, side := width, int64(56)
	v := n.conv(c, side, 7, n.conv(3, 224, 0))
	for range stages {
		short := n.conv(4*c, side, 1, v)
		for range depth {
			y := n.conv(c, side, 1, v)
			y = n.node(n.blocks[y].Bytes, 0, y)
			y = n.conv(c, side, 3, y)
			y = n.conv(4*c, side, 1, y)
			v = n.node(n.blocks[y].Bytes, 0, y, short)
			short = v
		}
		c, side = 2*c, side/2
	}
	n.node(4000, 0, v)
	return n.blocks
}

func unet(width int64, depth int) []Block {
	n := &net{}
	c, side := width, int64(256)
	v := n.conv(3, side, 0)
	var skips []int
	for range depth {
		v = n.conv(c, side, 3, n.conv(c, side, 3, v))
		skips = append(skips, v)
		c, side = 2*c, side/2
		v = n.node(2*c*side*side, 0, v)
	}
	for _, skip := range slices.Backward(skips) {
		c, side = c/2, side*2
		up := n.conv(c, side, 2, v)
		joined := n.node(8*c*side*side, 0, up, skip)
		v = n.conv(c, side, 3, n.conv(c, side, 3, joined))
	}
	n.node(4*side*side, 0, v)
	return n.blocks
}

func dense(growth int64, depth int) []Block {
	n := &net{}
	side := int64(56)
	v := n.conv(2*growth, side, 3, n.conv(3, 224, 0))
	c := 2 * growth
	for range 3 {
		for range depth {
			y := n.conv(growth, side, 3, n.conv(4*growth, side, 1, v))
			c += growth
			v = n.node(4*c*side*side, 0, v, y)
		}
		c, side = c/2, side/2
		v = n.conv(c, side, 1, v)
	}
	return n.blocks
}

func inception(width int64, depth int) []Block {
	n := &net{}
	v := n.conv(width, 35, 3)
	for i := range depth {
		side := max(8, 35-int64(i)*3)
		a := n.conv(width, side, 1, v)
		b := n.conv(width, side, 5, n.conv(width/2, side, 1, v))
		c := n.conv(width, side, 3, n.conv(width, side, 3, n.conv(width/2, side, 1, v)))
		d := n.conv(width/3, side, 1, n.node(n.blocks[v].Bytes, 0, v))
		v = n.node(4*side*side*(3*width+width/3), 0, a, b, c, d)
	}
	return n.blocks
}

func transformer(tokens, width, heads int64, depth int) []Block {
	n := &net{}
	mask := n.node(4*tokens*tokens, 0)
	x := n.node(4*tokens*width, 0)
	for range depth {
		h := n.node(4*tokens*width, 8*tokens, x)
		q, k, v := n.node(4*tokens*width, 0, h), n.node(4*tokens*width, 0, h), n.node(4*tokens*width, 0, h)
		s := n.node(4*tokens*tokens*heads, 0, q, k)
		s = n.node(4*tokens*tokens*heads, 0, s, mask)
		s = n.node(4*tokens*tokens*heads, 4*tokens, s)
		o := n.node(4*tokens*width, 0, n.node(4*tokens*width, 0, s, v))
		x = n.node(4*tokens*width, 0, x, o)
		f := n.node(16*tokens*width, 0, n.node(4*tokens*width, 8*tokens, x))
		x = n.node(4*tokens*width, 0, x, n.node(4*tokens*width, 0, n.node(16*tokens*width, 0, f)))
	}
	return n.blocks
}

// training is a forward pass whose values are consumed again, in reverse order, in the backward pass.
func training(forward []Block) []Block {
	n := &net{blocks: slices.Clone(forward)}
	for _, b := range forward {
		n.step = max(n.step, b.Last+1)
	}
	g := n.node(4, 0)
	for i, b := range slices.Backward(forward) {
		if b.Kind == Activation {
			g = n.node(b.Bytes, 0, g, i)
		}
	}
	return n.blocks
}

// nets are several networks of each kind.
func nets() map[string][]Block {
	all := map[string][]Block{}
	for _, w := range []int64{16, 24, 32, 48, 64} {
		all[fmt.Sprint("chain ", w)] = chain(w, 8)
		all[fmt.Sprint("residual ", w)] = residual(w, 4, w/8)
		all[fmt.Sprint("unet ", w)] = unet(w, 4)
		all[fmt.Sprint("dense ", w)] = dense(w, 6)
		all[fmt.Sprint("inception ", w)] = inception(w, 9)
		all[fmt.Sprint("transformer ", w)] = transformer(8*w, 768, 12, 6)
	}
	for name, blocks := range maps.Clone(all) {
		all["training "+name] = training(blocks)
	}
	return all
}

// random draws n blocks of random sizes that live for up to long steps.
func random(n, long int) []Block {
	r := rand.New(rand.NewPCG(1, 2))
	bs := make([]Block, n)
	for i := range bs {
		first := r.IntN(n)
		bs[i] = Block{fmt.Sprint("r", i), Activation, r.Int64N(100000), first, first + r.IntN(long)}
	}
	return bs
}
