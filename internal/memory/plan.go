package memory

import (
	"cmp"
	"math"
	"slices"
)

// Align is the alignment of offsets: a cache line, and the widest vector register.
const Align = 64

// patience is the maximum work of an order relative to the first one. Arenas with many gaps are slow to search, and are
// not the smallest.
const patience = 4

// A Plan is the offset of each block in one arena.
type Plan struct {
	Blocks  []Block
	Offsets []int64 // of each block, multiples of Align
	Size    int64   // of the arena, a multiple of Align
	Bound   int64   // lower bound of the size: the maximum of live bytes at one step, in multiples of Align
}

// Place assigns offsets to blocks. Blocks that are live at the same step do not overlap. The arena is rarely larger
// than its bound, and does not depend on the order of the blocks. The cost is n log n while the arena has few gaps.
//
// Each block is placed into the smallest sufficient gap among blocks with overlapping lifetimes. The result depends on
// the order, so several orders are tried: by size, as in TensorFlow Lite (Pisarchyk and Lee, Efficient Memory
// Management for Deep Neural Net Inference, 2020, arXiv:2001.03288, section 5); by first use, as in ONNX Runtime's
// memory pattern planner (MemPatternPlanner in core/framework); and by size and duration. The smallest arena is chosen.
func Place(blocks []Block) (*Plan, error) {
	if err := checkBlocks(blocks); err != nil {
		return nil, err
	}
	p := &Plan{Blocks: slices.Clone(blocks), Offsets: make([]int64, len(blocks))}
	ls := lives(p.Blocks)
	p.Bound = bound(ls)
	// An order that exceeds the arena of the one before ends there.
	p.Size = math.MaxInt64
	limit := math.MaxInt
	for i, before := range orders() {
		slices.SortFunc(ls, before)
		size, work := pack(ls, p.Size, limit)
		if size < p.Size {
			p.Size = size
			for _, l := range ls {
				p.Offsets[l.index] = l.offset
			}
		}
		// No order can be better.
		if p.Size == p.Bound {
			break
		}
		if i == 0 {
			limit = patience * work
		}
	}
	return p, nil
}

// Fragmentation is the relative excess of the arena over its bound: 0.02 is an arena 2 % larger than its bound.
func (p *Plan) Fragmentation() float64 {
	if p.Bound == 0 {
		return 0
	}
	return float64(p.Size)/float64(p.Bound) - 1
}

// A life is a block with compressed steps: only steps at which a block begins are counted, which separate all blocks.
type life struct {
	*Block
	index       int // of the block
	first, last int // births
	bytes       int64
	offset      int64
}

// lives returns the blocks of nonzero size.
func lives(blocks []Block) []life {
	var births []int
	for _, b := range blocks {
		if b.Bytes > 0 {
			births = append(births, b.First)
		}
	}
	slices.Sort(births)
	births = slices.Compact(births)
	var ls []life
	for i := range blocks {
		b := &blocks[i]
		if b.Bytes == 0 {
			continue
		}
		// Blocks overlap at some step only if they overlap at the birth of one of them.
		first, _ := slices.BinarySearch(births, b.First)
		next, _ := slices.BinarySearch(births, b.Last+1)
		ls = append(ls, life{Block: b, index: i, first: first, last: next - 1, bytes: aligned(b.Bytes)})
	}
	return ls
}

// steps returns the number of compressed steps.
func steps(ls []life) int {
	n := 0
	for _, l := range ls {
		n = max(n, l.last+1)
	}
	return n
}

// bound returns the maximum of live bytes at one step.
func bound(ls []life) int64 {
	changes := make([]int64, steps(ls)+1)
	for _, l := range ls {
		changes[l.first] += l.bytes
		changes[l.last+1] -= l.bytes
	}
	var live, most int64
	for _, c := range changes {
		live += c
		most = max(most, live)
	}
	return most
}

// orders returns the orders of placement.
func orders() []func(a, b life) int {
	bySize := func(a, b life) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), older(a, b))
	}
	byArea := func(a, b life) int {
		return cmp.Or(cmp.Compare(b.area(), a.area()), older(a, b))
	}
	return []func(a, b life) int{bySize, byArea, older}
}

// older is the order of first use. It is total for blocks that differ in anything, so that the result does not depend
// on the order of the blocks.
func older(a, b life) int {
	// The index last, for equal blocks, whose offsets may be exchanged.
	return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.Last, a.Last),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.index, b.index))
}

// area is bytes times steps. Products of large blocks do not fit an integer.
func (l life) area() float64 { return float64(l.bytes) * float64(l.Last-l.First+1) }

// pack places ls in their order. It returns the size of the arena and the work. It stops, with the maximum size, at an
// arena as large as most and at the work limit.
func pack(ls []life, most int64, limit int) (size int64, work int) {
	o := newOccupancy(steps(ls))
	for i := range ls {
		l := &ls[i]
		l.offset = o.fit(l.first, l.last, l.bytes)
		o.occupy(l.first, l.last, span{l.offset, l.offset + l.bytes})
		size = max(size, l.offset+l.bytes)
		if size >= most || o.work > limit {
			return math.MaxInt64, o.work
		}
	}
	return size, o.work
}
