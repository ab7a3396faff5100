package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// minTransformArea is the number of output elements per channel, over all images, from which transforming the weights
// for a single run pays off (measured).
const minTransformArea = 2048

// transformsComputed reports whether weights that were computed in this run are transformed.
func (g *Geometry) transformsComputed() bool {
	// All images share the transformed weights, so that the batch counts.
	if len(g.in) != 2 || g.Batch*g.OutArea() < minTransformArea {
		return false
	}
	for i := range g.in {
		if g.kernel[i] != 3 || g.stride[i] != 1 || g.dilation[i] != 1 || g.begin[i] < 0 {
			return false
		}
	}
	// Weights of a training step are inputs. 64 to 64 channels of 56×56 pixels with computed weights (BenchmarkConv):
	// 72 to 87 Gmac/s, as a product 36 to 46; a training step of a small CNN (BenchmarkTraining, best of three) 190 ms,
	// with products 277 (one core of an AMD EPYC with AVX2, load of 26, binaries in turn).
	return winogradPays(g.InC, g.OutC) && g.Groups*g.OutC*g.InC <= manyKernels
}

// computedWork is the size of computed's scratch memory.
func (g *Geometry) computedWork(workers int, h Halves) int64 {
	if d := DepthwiseOf(g); d != nil {
		return d.work(workers, h)
	}
	if g.transformsComputed() {
		return g.transformedWork(workers)
	}
	return g.productWork(workers, h)
}

// productWork is the size of multiply's scratch memory.
func (g *Geometry) productWork(workers int, h Halves) int64 {
	if h.Y {
		return g.TableSize() + gemm.StoreWork(g.Product(), g.Products(), workers)
	}
	return g.TableSize() + gemm.FloatWork(g.Product(), g.Products(), workers, false)
}

// computed is the algorithm for weights that are not prepacked.
func (g *Geometry) computed() algorithm {
	if d := DepthwiseOf(g); d != nil {
		return d.run
	}
	if !g.transformsComputed() {
		return g.multiply
	}
	return g.transformed
}

// transformedWork is the size of transformed's scratch memory.
func (g *Geometry) transformedWork(workers int) int64 {
	return aligned(winogradBytes(g)) + winogradOf(g, nil, workers).work(workers)
}

// transformed transforms the weights, and convolves with them.
func (g *Geometry) transformed(p *op.Pool, work []byte, j job) {
	buf := scratch[float32](work)
	u := buf.take(int(winogradBytes(g) / 4))
	// By the code for constant weights, so that results of streamed ones are bit-identical.
	transformWeights(p, u, j.w, g.Groups, g.OutC, g.InC)
	winogradOf(g, u, p.Workers()).run(p, buf, j)
}
