package grad

import (
	"cmp"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A Profile is the data for choosing segments, per forward node.
type Profile struct {
	Kept  []int64   // bytes of its results that the backward pass consumes
	Cross []int64   // bytes of results of earlier nodes that it or later ones consume, without inputs
	Time  []float64 // to compute it, in multiply-adds
}

// Profile returns the profile of the forward graph.
func (a *Activations) Profile() Profile {
	t, inside := a.Tape, a.forwardSet()
	n := len(t.forward)
	p := Profile{Kept: make([]int64, n), Cross: make([]int64, n), Time: make([]float64, n)}
	at := map[*ir.Node]int{}
	for i, node := range t.forward {
		at[node] = i
	}
	for i, node := range t.forward {
		p.Time[i] = nodeWork(t, node)
		for _, v := range node.Outputs {
			if v == nil || isView(node) {
				continue
			}
			if len(usesOutside(v, inside)) > 0 {
				p.Kept[i] += t.Bytes(v)
			}
			// Views were left out above: they share the memory of their base, which counts until their last consumer.
			for k := i + 1; k <= lastConsumer(v, at); k++ {
				p.Cross[k] += t.Bytes(v)
			}
		}
	}
	return p
}

// lastConsumer returns the index of the last forward node that consumes v or a view of it.
func lastConsumer(v *ir.Value, at map[*ir.Node]int) (last int) {
	for _, u := range v.Uses() {
		i, ok := at[u.Node]
		if !ok {
			continue
		}
		last = max(last, i)
		if isView(u.Node) && u.Index == 0 {
			last = max(last, lastConsumer(u.Node.Outputs[0], at))
		}
	}
	return last
}

// nodeWork returns a rough number of multiply-adds.
func nodeWork(t *Tape, n *ir.Node) float64 {
	out := 0.0
	for _, v := range n.Outputs {
		if v != nil {
			out += float64(t.types[v].Elems())
		}
	}
	if operator.Of(n).Layer() {
		shape := t.types[n.Input(1)].Shape
		if axes, ok := operator.Of(n).Input(1).Axes(n, len(shape)); ok {
			return out * float64(axes.FanIn(shape))
		}
	}
	return out
}

// Even divides the forward graph into k segments that store about the same, at positions where few bytes cross. The
// last one is stored.
func (p Profile) Even(k int) []Segment {
	total := int64(0)
	for _, b := range p.Kept {
		total += b
	}
	// With the exact share as the limit there may be many more than k.
	for _, slack := range []float64{1, 1.25, 1.5, 2, 4} {
		most := int64(float64(total) / float64(max(1, k)) * slack)
		if s, ok := p.cut(most); ok && len(s) < k+k/2 {
			return s
		}
	}
	return nil
}

// Every ends a segment after every n nodes with stored results.
func (p Profile) Every(n int) []Segment {
	var cuts []int
	count := 0
	for i, b := range p.Kept {
		if b == 0 {
			continue
		}
		if count++; count%n == 0 {
			cuts = append(cuts, i+1)
		}
	}
	return between(cuts)
}

// between returns the segments that end at cuts; the nodes after the last cut are in none.
func between(cuts []int) []Segment {
	var out []Segment
	from := 0
	for _, c := range cuts {
		out = append(out, Segment{from, c})
		from = c
	}
	return out
}

// Sqrt is Even with the square root of the number of nodes with stored results.
func (p Profile) Sqrt() []Segment {
	n := 0
	for _, b := range p.Kept {
		if b > 0 {
			n++
		}
	}
	return p.Even(int(math.Round(math.Sqrt(float64(n)))))
}

// cut returns the segments with the fewest bytes across their ends, none of which stores more than most unless it is
// one node.
func (p Profile) cut(most int64) ([]Segment, bool) {
	return p.fewest(most, func(int, int, int64, int64) bool { return true })
}

// below returns the segments with the fewest stored bytes, while no segment needs more than most together with the
// stored bytes before it and with one result and its gradient inside. Segments of large results are shorter then, since
// few bytes are stored before them.
func (p Profile) below(most int64) ([]Segment, bool) {
	return p.fewest(most, func(from, to int, kept, stays int64) bool {
		return stays <= most-kept-2*slices.Max(p.Kept[from:to])
	})
}

// fewest returns the segments with the fewest bytes across their ends, by dynamic programming over the positions of
// cuts. A segment of several nodes stores no more than most; fits decides by the stored bytes of the segment and of
// those before it. It fails if there are no such segments.
func (p Profile) fewest(most int64, fits func(from, to int, kept, stays int64) bool) ([]Segment, bool) {
	positions := p.positions()
	best := make([]int64, len(positions))
	from := make([]int, len(positions))
	for j := 1; j < len(positions); j++ {
		best[j] = math.MaxInt64
		for i := j - 1; i >= 0; i-- {
			kept := p.storedBytes(positions[i], positions[j])
			// Segments from earlier positions store even more. One between neighbouring positions is as short as it can
			// be.
			if i < j-1 && kept > most {
				break
			}
			if best[i] == math.MaxInt64 || !fits(positions[i], positions[j], kept, best[i]) {
				continue
			}
			if b := best[i] + p.cross(positions[j]); b < best[j] {
				best[j], from[j] = b, i
			}
		}
	}
	if best[len(positions)-1] == math.MaxInt64 {
		return nil, false
	}
	var cuts []int
	for j := from[len(positions)-1]; j > 0; j = from[j] {
		cuts = append(cuts, positions[j])
	}
	slices.Reverse(cuts)
	return between(cuts), len(cuts) > 0
}

// cross returns the bytes across a cut before node i.
func (p Profile) cross(i int) int64 {
	if i >= len(p.Cross) {
		return 0
	}
	return p.Cross[i]
}

// storedBytes returns the bytes that nodes from to to-1 store.
func (p Profile) storedBytes(from, to int) (sum int64) {
	for _, b := range p.Kept[from:to] {
		sum += b
	}
	return sum
}

// maxPositions limits the work of choosing cuts.
const maxPositions = 160

// positions returns candidate cuts: both ends, and those with the fewest bytes across.
func (p Profile) positions() []int {
	n := len(p.Kept)
	var inner []int
	for i := 1; i < n; i++ {
		inner = append(inner, i)
	}
	if len(inner) > maxPositions {
		slices.SortStableFunc(inner, func(a, b int) int { return cmp.Compare(p.Cross[a], p.Cross[b]) })
		inner = inner[:maxPositions]
		slices.Sort(inner)
	}
	return slices.Concat([]int{0}, inner, []int{n})
}

// buckets is the resolution of bytes in Within.
const buckets = 96

// Within returns the segments with the least recomputation time while the stored bytes, with those of the largest
// recomputed segment, are within limit; those with the fewest bytes if none is. Nodes outside segments are stored. It
// is dynamic programming over positions and stored bytes, for several sizes of the largest segment.
func (p Profile) Within(limit int64) []Segment {
	positions := p.positions()
	total := p.storedBytes(0, len(p.Kept))
	if total <= limit {
		return nil
	}
	best, fastest := []Segment(nil), math.Inf(1)
	small, bytes := []Segment(nil), int64(math.MaxInt64)
	for divisor := int64(2); divisor <= 64; divisor = divisor*5/4 + 1 {
		most := total / divisor
		s, ok := p.cut(most)
		if !ok {
			continue
		}
		if b := p.peak(s); b < bytes {
			small, bytes = s, b
		}
		// While a segment is recomputed its results are live, at most this many bytes; stored bytes have the rest.
		if c, time := p.chooseWithin(positions, limit-most, most); time < fastest {
			best, fastest = c, time
		}
	}
	if math.IsInf(fastest, 1) {
		return small
	}
	return best
}

// Choices returns the distinct results of cut and below for limits from half of the stored bytes down to a 64th.
func (p Profile) Choices() [][]Segment {
	var all [][]Segment
	bytes := p.storedBytes(0, len(p.Kept))
	for _, find := range []func(int64) ([]Segment, bool){p.cut, p.below} {
		for most := bytes / 2; most > bytes/64; most = most * 7 / 8 {
			s, ok := find(most)
			if ok && !slices.ContainsFunc(all, func(t []Segment) bool { return slices.Equal(s, t) }) {
				all = append(all, s)
			}
		}
	}
	return all
}

// Work returns the time to recompute a segment.
func (p Profile) Work(s Segment) (sum float64) {
	for _, t := range p.Time[s.From:s.To] {
		sum += t
	}
	return sum
}

// peak returns an estimate of the maximum stored bytes.
func (p Profile) peak(segments []Segment) int64 {
	kept, most, from := int64(0), int64(0), 0
	for _, s := range segments {
		kept += p.storedBytes(from, s.From) + p.cross(s.To)
		most = max(most, p.storedBytes(s.From, s.To))
		from = s.To
	}
	return kept + p.storedBytes(from, len(p.Kept)) + most
}

// chooseWithin returns the choice for one size of the largest segment.
func (p Profile) chooseWithin(positions []int, limit, most int64) ([]Segment, float64) {
	if limit <= 0 {
		return nil, math.Inf(1)
	}
	unit := max(1, (limit+buckets-1)/buckets)
	type state struct {
		time      float64
		from      int // position and bucket of the predecessor
		left      int
		recompute bool
	}
	table := make([][]state, len(positions))
	for i := range table {
		table[i] = make([]state, buckets+1)
		for b := range table[i] {
			table[i][b].time = math.Inf(1)
		}
	}
	table[0][0].time = 0
	reach := func(i, b, j int, bytes int64, time float64, recompute bool) {
		// Rounded up: a choice never stores more than its buckets say.
		to := b + int((bytes+unit-1)/unit)
		if to > buckets {
			return
		}
		if t := table[i][b].time + time; t < table[j][to].time {
			table[j][to] = state{t, i, b, recompute}
		}
	}
	for i := range positions {
		for j := i + 1; j < len(positions); j++ {
			kept, time := p.storedBytes(positions[i], positions[j]), p.Work(Segment{positions[i], positions[j]})
			if kept > most && j > i+1 {
				break
			}
			for b := range table[i] {
				if math.IsInf(table[i][b].time, 1) {
					continue
				}
				reach(i, b, j, kept, 0, false)
				reach(i, b, j, p.cross(positions[j]), time, true)
			}
		}
	}
	end, at := len(positions)-1, 0
	for b := range table[end] {
		if table[end][b].time < table[end][at].time {
			at = b
		}
	}
	time := table[end][at].time
	if math.IsInf(time, 1) {
		return nil, time
	}
	var out []Segment
	for i, b := end, at; i > 0; {
		s := table[i][b]
		if s.recompute {
			out = append(out, Segment{positions[s.from], positions[i]})
		}
		i, b = s.from, s.left
	}
	slices.Reverse(out)
	return out, time
}
