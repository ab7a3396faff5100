package report

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// channelBlock is the number of channels in a block of the runtime's convolutions on CPUs with AVX2. With AVX-512 it is
// 16: filters whose output channels are no multiple of it are larger then.
const channelBlock = 8

// padded is the bytes of a filter of the Conv n once the runtime has padded the output channels of a two-dimensional
// one to blocks; n is nil for other weights.
func padded(bytes int64, n *ir.Node, shape []int64) int64 {
	if n == nil || len(shape) != 4 || n.Int("group", 1) != 1 || shape[0] == 0 {
		return bytes
	}
	out, in := shape[0], shape[1]
	// The runtime has no blocked kernel for these.
	if in > channelBlock && in%channelBlock != 0 {
		return bytes
	}
	return bytes / out * ((out + channelBlock - 1) / channelBlock * channelBlock)
}

// absorbed reports whether the runtime removes n with its constant input i, or fuses n into the Conv before it: of
// BatchNormalization a bias is left, which takes the place of that of Conv.
func (c *constants) absorbed(n *ir.Node, i int) bool {
	if n.Op.Is("Dropout") {
		return i > 0
	}
	if !n.Op.Is("BatchNormalization") || i == 0 {
		return false
	}
	conv := n.Input(0).Producer()
	if conv == nil || !conv.Op.Is("Conv") || conv.Outputs[0].OnlyConsumer() != n || !c.foldable(conv.Input(1)) {
		return false
	}
	return operator.Of(n).Input(i).Role != operator.Shift || len(conv.Inputs()) > 2
}
