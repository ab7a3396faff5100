package coupling

import "github.com/mcompress/mcompress/ir"

// HeadCounts are the numbers of heads of an attention, before and after a removal.
type HeadCounts struct {
	Node                     *ir.Node
	Heads, HeadsLeft         int // of queries
	KeyValues, KeyValuesLeft int
	Size                     int // channels of a head; 0 if it is not known
}

// HeadCounts are those of each attention whose heads are known.
func (p *Plan) HeadCounts(pruned map[Channel]bool) []HeadCounts {
	r := &removal{p.channelMap, pruned}
	var all []HeadCounts
	for _, a := range p.attentions {
		left := r.keptIndices(a.heads)
		c := HeadCounts{Node: a.node, Heads: len(a.heads), HeadsLeft: len(left), Size: p.blockSizes[a.heads[0]]}
		c.KeyValues = p.distinct(a.heads)
		kept := make([]Channel, len(left))
		for i, at := range left {
			kept[i] = a.heads[at]
		}
		c.KeyValuesLeft = p.distinct(kept)
		all = append(all, c)
	}
	return all
}

// distinct is the number of classes of us.
func (p *Plan) distinct(us []Channel) int {
	seen := map[Channel]bool{}
	for _, u := range us {
		seen[p.class(u)] = true
	}
	return len(seen)
}
