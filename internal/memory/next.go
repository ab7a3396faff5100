package memory

// reserve is the fraction of its size that a growing block has in reserve, at most maxReserve bytes.
const (
	reserve    = 1. / 8
	maxReserve = 1 << 20
)

// PlaceNext places blocks that follow those of capacity, such as those of the next token of a sequence. If they have
// the same lifetimes and are not larger, they have the offsets, size and bound of capacity; otherwise those that grew
// by a small fraction get a reserve, so that most calls with growing sizes are cheap. It returns the plan, and the
// capacity for the next call. capacity may be nil.
func PlaceNext(capacity *Plan, blocks []Block) (plan, next *Plan, err error) {
	if !capacity.like(blocks) {
		plan, err = Place(blocks)
		return plan, plan, err
	}
	if !capacity.holds(blocks) {
		if capacity, err = Place(capacity.grown(blocks)); err != nil {
			return nil, nil, err
		}
	}
	return &Plan{Blocks: blocks, Offsets: capacity.Offsets, Size: capacity.Size, Bound: capacity.Bound}, capacity, nil
}

// like reports whether blocks are those of p, perhaps with other sizes.
func (p *Plan) like(blocks []Block) bool {
	if p == nil || len(p.Blocks) != len(blocks) {
		return false
	}
	for i, b := range blocks {
		// A comparison of all fields but the size.
		if b.Bytes = p.Blocks[i].Bytes; b != p.Blocks[i] {
			return false
		}
	}
	return true
}

// holds reports whether blocks fit into those of p, and use at least half of their bytes.
func (p *Plan) holds(blocks []Block) bool {
	used, free := int64(0), int64(0)
	for i, b := range blocks {
		more := p.Blocks[i].Bytes - b.Bytes
		if more < 0 {
			return false
		}
		used, free = used+b.Bytes, free+more
	}
	// Otherwise sequences that become short would keep the arena of the longest one.
	return free <= used
}

// grown adds a reserve to the blocks that are a little larger than those of p, and leaves those that are a little
// smaller what they have of it.
func (p *Plan) grown(blocks []Block) []Block {
	extra := func(n int64) int64 { return min(int64(reserve*float64(n)), maxReserve) }
	out := make([]Block, len(blocks))
	for i, b := range blocks {
		switch now := p.Blocks[i].Bytes; {
		// A small growth will go on, as that of a key-value cache by a token; a large one is another input, for which
		// a reserve is wasted.
		case b.Bytes > now && b.Bytes-now <= extra(now):
			b.Bytes += extra(b.Bytes)
		case b.Bytes < now && now-b.Bytes <= extra(b.Bytes):
			b.Bytes = now
		}
		out[i] = b
	}
	return out
}
