package quant

import (
	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A quantized depthwise convolution is computed in float32: its sums are integers that float32 represents exactly, as
// each has few products.
type depthwise struct {
	*conv.Depthwise
	x, w         *ir.Array
	xZero, wZero []int32
}

// depthwiseOf is nil if the convolution is not depthwise, or if a sum might not be exact.
func depthwiseOf(g *conv.Geometry) *depthwise {
	// float32 represents all integers up to 2^24, and products have factors of at most 255.
	const largest = 255 * 255 // of a product
	if g.Depth()*largest > 1<<24 {
		return nil
	}
	if d := conv.DepthwiseOf(g); d != nil {
		return &depthwise{Depthwise: d}
	}
	return nil
}

// slot is the scratch memory of one worker in bytes: a channel of x and of the result, as floats and as sums, the
// weights, and the scratch memory of the float convolution.
func (d *depthwise) slot() int64 {
	return aligned(4 * int64(d.InArea()+2*d.OutArea()+d.Depth()+d.Scratch()))
}

func (d *depthwise) work(workers int) int64 { return int64(workers) * d.slot() }

// run passes the sums of each channel to finish, like convolution.run.
func (d *depthwise) run(p *op.Pool, work []byte, finish channelFinisher) {
	p.Slots(d.Products(), func(i, slot int) {
		all := kernel.Words[float32](work[int64(slot)*d.slot():][:d.slot()])
		take := func(n int) []float32 {
			xs := all[:n:n]
			all = all[n:]
			return xs
		}
		x, y, w := take(d.InArea()), take(d.OutArea()), take(d.Depth())
		sums := kernel.Words[int32](kernel.Bytes(take(d.OutArea())))
		values(x, conv.Input(d.Geometry, d.x.Data, i), d.x.DType, partOf(d.xZero, 0, 1))
		for m := range d.OutC {
			channel := i%d.Groups*d.OutC + m
			values(w, part(d.w.Data, channel, d.Depth()), d.w.DType, partOf(d.wZero, channel, 1))
			d.Channel(y, x, w, 0, all)
			// Exact: see depthwiseOf.
			for j, v := range y {
				sums[j] = int32(v)
			}
			finish(i, channel, 0, sums)
		}
	})
}

// values are quantized values minus their zero point, if there is one.
func values(dst []float32, quantized []byte, dt ir.DType, zero []int32) {
	z := int32(0)
	if len(zero) > 0 {
		z = zero[0]
	}
	kernel.Dequantize(dst, quantized, dt == ir.Int8, 1, z)
}
