package coupling

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An axis is the axis of a value that holds channels. It is counted from the end, so that the last one is -1, as
// broadcasting counts.
type axis struct {
	at       int
	channels []Channel
	outer    bool // merged with axes before it, whose size is not known
}

// A channelMap has the channels of each value, the classes of channels that are pruned together, and the changes of
// nodes that their removal requires.
type channelMap struct {
	classes classes
	axes    map[*ir.Value]*axis // of values that nodes make
	keys    []*ir.Value         // the keys of axes, in the order of the graph
	edits   []func(*removal)

	splits     []blockSplit
	attentions []attention
	blockSizes map[Channel]int // channels of each block, by its first one
}

// A blockSplit is an axis of blocks of channels, which are followed for the heads of attentions only.
type blockSplit struct {
	node   *ir.Node
	blocks []Channel
}

// in is the axis of n's input i, nil where it has no channels.
func (ch *channelMap) in(n *ir.Node, i int) *axis {
	v := n.Input(i)
	if v == nil || v.Graph() != n.Graph() {
		return nil
	}
	return ch.axes[v]
}

// set sets the channels of v.
func (ch *channelMap) set(v *ir.Value, at int, channels []Channel) {
	if v == nil {
		return
	}
	ch.axes[v] = &axis{at: at, channels: channels}
	ch.keys = append(ch.keys, v)
}

// keep keeps channels because n uses them in a way that is not supported.
func (ch *channelMap) keep(n *ir.Node, us []Channel, reason pass.Reason) {
	ch.classes.keep(us, reason.At(n))
}
