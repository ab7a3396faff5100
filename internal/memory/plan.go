package memory

import (
	"cmp"
	"math"
	"slices"
)

// Align is what offsets are multiples of: a cache line, and the widest vector register.
const Align = 64

// patience is how many times the work of the first order another one may take. Arenas
// that get full of gaps are slow to search, and are not the ones that win.
const patience = 4

// A Plan says where in one arena each block lies.
type Plan struct {
	Blocks  []Block
	Offsets []int64 // of each block, multiples of Align
	Size    int64   // of the arena, a multiple of Align
	Bound   int64   // no arena can be smaller: the most bytes alive at one step, in multiples of Align
}

// Place gives each block its offset. Blocks that are alive at the same step do not
// overlap. The arena is seldom larger than its bound, and the same blocks give the same
// arena in whatever order they come. Its cost grows as n log n while the arena has few
// gaps.
//
// Blocks are placed one after another, each into the smallest gap that its contemporaries
// leave and that holds it. The result depends on who comes first, so several orders are
// tried: by size, which is TensorFlow Lite's (Pisarchyk and Lee, Efficient Memory
// Management for Deep Neural Net Inference, 2020, arXiv:2001.03288, section 5); by first
// use, which is what ONNX Runtime's memory pattern planner does (MemPatternPlanner in
// core/framework); and by size and duration. The smallest arena wins.
func Place(blocks []Block) (*Plan, error) {
	if err := check(blocks); err != nil {
		return nil, err
	}
	p := &Plan{Blocks: slices.Clone(blocks), Offsets: make([]int64, len(blocks))}
	ls := lives(p.Blocks)
	p.Bound = bound(ls)
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
		if p.Size == p.Bound {
			break
		}
		if i == 0 {
			limit = patience * work
		}
	}
	return p, nil
}

// Fragmentation is the part of the arena that nothing could need: 0.02 is an arena 2 %
// larger than its bound.
func (p *Plan) Fragmentation() float64 {
	if p.Bound == 0 {
		return 0
	}
	return float64(p.Size)/float64(p.Bound) - 1
}

// A life is a block in the making. Steps are counted by births: a step at which no block
// is born tells no two blocks apart that another one would not.
type life struct {
	*Block
	index       int // of the block
	first, last int // births
	bytes       int64
	offset      int64
}

// lives are the blocks that need memory.
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
		first, _ := slices.BinarySearch(births, b.First)
		next, _ := slices.BinarySearch(births, b.Last+1)
		ls = append(ls, life{Block: b, index: i, first: first, last: next - 1, bytes: aligned(b.Bytes)})
	}
	return ls
}

// steps is how many births ls counts by.
func steps(ls []life) int {
	n := 0
	for _, l := range ls {
		n = max(n, l.last+1)
	}
	return n
}

// bound is the most bytes alive at one step.
func bound(ls []life) int64 {
	changes := make([]int64, steps(ls)+1)
	for _, l := range ls {
		changes[l.first] += l.bytes
		changes[l.last+1] -= l.bytes
	}
	var alive, most int64
	for _, c := range changes {
		alive += c
		most = max(most, alive)
	}
	return most
}

// orders are those in which blocks are placed.
func orders() []func(a, b life) int {
	bySize := func(a, b life) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), older(a, b))
	}
	byArea := func(a, b life) int {
		return cmp.Or(cmp.Compare(b.area(), a.area()), older(a, b))
	}
	return []func(a, b life) int{bySize, byArea, older}
}

// older is the order of first use. It tells all blocks apart that differ in anything, so
// that the order in which blocks come does not matter.
func older(a, b life) int {
	return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.Last, a.Last),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.index, b.index))
}

// area is bytes times steps. Products of large blocks do not fit an integer.
func (l life) area() float64 { return float64(l.bytes) * float64(l.Last-l.First+1) }

// pack places ls in their order. It returns the size of the arena and the work that this
// took. It gives up, with all the size there is, on an arena that gets as large as most
// and on work beyond the limit.
func pack(ls []life, most int64, limit int) (size int64, work int) {
	o := newOccupancy(steps(ls))
	for i := range ls {
		l := &ls[i]
		l.offset = o.fit(l.first, l.last, l.bytes)
		o.take(l.first, l.last, span{l.offset, l.offset + l.bytes})
		size = max(size, l.offset+l.bytes)
		if size >= most || o.work > limit {
			return math.MaxInt64, o.work
		}
	}
	return size, o.work
}
