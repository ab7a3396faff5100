package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// freshTiles is how many elements of each channel of the output, over all images, pay for transforming weights
// that serve one run alone (measured).
const freshTiles = 2048

// freshWinograd reports whether weights that were computed in this run are transformed.
func (g *Geometry) freshWinograd() bool {
	if len(g.in) != 2 || g.Batch*g.Places() < freshTiles {
		return false
	}
	for i := range g.in {
		if g.kernel[i] != 3 || g.stride[i] != 1 || g.dilation[i] != 1 || g.begin[i] < 0 {
			return false
		}
	}
	return g.OutC >= fewChannels && g.InC >= fewChannels && g.Groups*g.OutC*g.InC <= manyKernels
}

// freshWork is the scratch that fresh wants.
func (g *Geometry) freshWork(workers int) int64 {
	if d := DepthwiseOf(g); d != nil {
		return d.work(workers)
	}
	if g.freshWinograd() {
		return g.transformedWork(workers)
	}
	return g.TableSize() + gemm.FloatWork(g.Product(), g.Products(), workers, false)
}

// fresh convolves with weights that nobody has prepared.
func (g *Geometry) fresh(p *op.Pool, work []byte, j job) {
	if d := DepthwiseOf(g); d != nil {
		d.run(p, work, j)
		return
	}
	if !g.freshWinograd() {
		g.multiply(p, work, j)
		return
	}
	g.transformed(p, work, j)
}

// transformedWork is the scratch that transformed wants.
func (g *Geometry) transformedWork(workers int) int64 {
	return aligned(winogradBytes(g)) + winogradOf(g, nil).work(workers)
}

// transformed transforms the weights, and convolves with them.
func (g *Geometry) transformed(p *op.Pool, work []byte, j job) {
	room := scratch[float32](work)
	u := room.take(int(winogradBytes(g) / 4))
	transformWeights(p, u, j.w, g.Groups, g.OutC, g.InC)
	winogradOf(g, u).run(p, room, j)
}
