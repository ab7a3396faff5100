package random

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// piece is the number of elements per stream.
const piece = 4096

// count is Prepare: it counts the runs of a node, so that a loop does not repeat the same numbers.
func count(*op.Node, []*ir.Array, *op.Pool) (*op.Prepared, error) {
	return &op.Prepared{State: new(atomic.Uint64)}, nil
}

// nodeStreams are the streams of one run of a node.
type nodeStreams struct{ seed, run uint64 }

func newNodeStreams(c *op.Call) nodeStreams {
	d := nodeStreams{seed: c.Seed}
	if c.Has("seed") {
		d.seed = uint64(math.Float32bits(c.Float("seed", 0)))
	}
	h := fnv.New64a()
	h.Write([]byte(c.Label))
	d.seed ^= h.Sum64()
	if runs, ok := c.State.(*atomic.Uint64); ok {
		d.run = runs.Add(1)
	}
	return d
}

// stream is the i-th one of the run. PCG accepts any pair of numbers as a seed, including similar ones.
func (d nodeStreams) stream(i int) *rand.Rand {
	// Runs count in the upper half and pieces in the lower one, so that no stream repeats.
	return rand.New(rand.NewPCG(d.seed, d.run<<32^uint64(i)))
}

// fill writes draw's result for each index.
func (d nodeStreams) fill(p *op.Pool, dst *ir.Array, draw func(r *rand.Rand, i int) float64) {
	n := int(dst.Elems())
	p.For((n+piece-1)/piece, func(k int) {
		r, from := d.stream(k), k*piece
		var buf [piece]float64
		xs := buf[:min(piece, n-from)]
		for i := range xs {
			xs[i] = draw(r, from+i)
		}
		number.Write(dst, from, xs)
	})
}
