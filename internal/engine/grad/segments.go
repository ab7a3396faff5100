package grad

import (
	"cmp"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Profile is what choosing segments goes by, for each forward node.
type Profile struct {
	Kept  []int64   // bytes of its results that the way back reads
	Cross []int64   // bytes of results of earlier nodes that it or later ones read, inputs left out
	Time  []float64 // to compute it, in multiply-adds
}

// Profile returns the profile of the forward graph. Views of stored values count like values of their own.
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
			if v == nil {
				continue
			}
			if len(usesOutside(v, inside)) > 0 {
				p.Kept[i] += t.Bytes(v)
			}
			last := i
			for _, u := range v.Uses() {
				if u.Node != nil && inside[u.Node] {
					last = max(last, at[u.Node])
				}
			}
			for k := i + 1; k <= last; k++ {
				p.Cross[k] += t.Bytes(v)
			}
		}
	}
	return p
}

// nodeWork is a rough number of multiply-adds.
func nodeWork(t *Tape, n *ir.Node) float64 {
	out := 0.0
	for _, v := range n.Outputs {
		if v != nil {
			out += float64(t.types[v].Elems())
		}
	}
	switch n.Op.Type {
	case "Conv", "ConvTranspose":
		w := t.types[n.Input(1)]
		return out * float64(w.Elems()) / float64(max(1, w.Shape[0]))
	case "MatMul", "Gemm", "FusedMatMul":
		if x := t.types[n.Input(0)].Shape; len(x) > 0 {
			return out * float64(x[len(x)-1])
		}
	}
	return out
}

// Even cuts the forward graph into k segments that keep about as much each, at places where little crosses. The last one is
// kept.
func (p Profile) Even(k int) []Segment {
	total := int64(0)
	for _, b := range p.Kept {
		total += b
	}
	for _, slack := range []float64{1, 1.25, 1.5, 2, 4} {
		most := int64(float64(total) / float64(max(1, k)) * slack)
		if s, ok := p.cut(most); ok && len(s) < k+k/2 {
			return s
		}
	}
	return nil
}

// Every cuts behind every n nodes whose results are kept.
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

// between are the segments that cuts end; what lies behind the last one is none.
func between(cuts []int) []Segment {
	var out []Segment
	from := 0
	for _, c := range cuts {
		out = append(out, Segment{from, c})
		from = c
	}
	return out
}

// Sqrt is Even with as many segments as the root of the number of nodes whose results are kept.
func (p Profile) Sqrt() []Segment {
	n := 0
	for _, b := range p.Kept {
		if b > 0 {
			n++
		}
	}
	return p.Even(int(math.Round(math.Sqrt(float64(n)))))
}

// cut finds the segments, none of which keeps more than most unless it is one node, across whose ends the fewest bytes go in all.
func (p Profile) cut(most int64) ([]Segment, bool) {
	return p.fewest(most, func(int, int, int64, int64) bool { return true })
}

// below finds the segments of which the fewest bytes stay, while no segment keeps more than most together with what
// stays of those before it and a result and its gradient within. Segments of large results are shorter then: little stays of what comes before them.
func (p Profile) below(most int64) ([]Segment, bool) {
	return p.fewest(most, func(from, to int, kept, stays int64) bool {
		return stays <= most-kept-2*slices.Max(p.Kept[from:to])
	})
}

// fewest finds the segments across whose ends the fewest bytes go in all, by dynamic programming over the places of cuts. One of
// several nodes keeps no more than most; fits is told what each keeps, and what stays of those before it. It fails if there are none.
func (p Profile) fewest(most int64, fits func(from, to int, kept, stays int64) bool) ([]Segment, bool) {
	places := p.places()
	best := make([]int64, len(places))
	from := make([]int, len(places))
	for j := 1; j < len(places); j++ {
		best[j] = math.MaxInt64
		for i := j - 1; i >= 0; i-- {
			kept := p.kept(places[i], places[j])
			if i < j-1 && kept > most {
				break
			}
			if best[i] == math.MaxInt64 || !fits(places[i], places[j], kept, best[i]) {
				continue
			}
			if b := best[i] + p.cross(places[j]); b < best[j] {
				best[j], from[j] = b, i
			}
		}
	}
	if best[len(places)-1] == math.MaxInt64 {
		return nil, false
	}
	var cuts []int
	for j := from[len(places)-1]; j > 0; j = from[j] {
		cuts = append(cuts, places[j])
	}
	slices.Reverse(cuts)
	return between(cuts), len(cuts) > 0
}

// cross is what goes over a cut before node i.
func (p Profile) cross(i int) int64 {
	if i >= len(p.Cross) {
		return 0
	}
	return p.Cross[i]
}

// kept is what nodes from to to-1 keep.
func (p Profile) kept(from, to int) (sum int64) {
	for _, b := range p.Kept[from:to] {
		sum += b
	}
	return sum
}

// mostPlaces bounds the work of choosing cuts.
const mostPlaces = 160

// places are where cuts may be: both ends, and those where the fewest bytes cross.
func (p Profile) places() []int {
	n := len(p.Kept)
	var inner []int
	for i := 1; i < n; i++ {
		inner = append(inner, i)
	}
	if len(inner) > mostPlaces {
		slices.SortStableFunc(inner, func(a, b int) int { return cmp.Compare(p.Cross[a], p.Cross[b]) })
		inner = inner[:mostPlaces]
		slices.Sort(inner)
	}
	return slices.Concat([]int{0}, inner, []int{n})
}

// buckets is how finely Within counts bytes.
const buckets = 96

// Within chooses the segments whose recomputation takes the least time while what is kept, with the largest segment that is
// computed again, stays within room bytes; the fewest bytes if nothing does. A part that is not in a segment is kept whole. It is
// dynamic programming over places and kept bytes, for several sizes of the largest segment.
func (p Profile) Within(room int64) []Segment {
	places := p.places()
	total := p.kept(0, len(p.Kept))
	if total <= room {
		return nil
	}
	best, least := []Segment(nil), math.Inf(1)
	small, bytes := []Segment(nil), int64(math.MaxInt64)
	for share := int64(2); share <= 64; share = share*5/4 + 1 {
		most := total / share
		s, ok := p.cut(most)
		if !ok {
			continue
		}
		if b := p.peak(s); b < bytes {
			small, bytes = s, b
		}
		if c, time := p.within(places, room-most, most); time < least {
			best, least = c, time
		}
	}
	if math.IsInf(least, 1) {
		return small
	}
	return best
}

// Choices are the segments that cut and below find for bounds from half of what is kept down to a 64th, each choice once.
func (p Profile) Choices() [][]Segment {
	var all [][]Segment
	bytes := p.kept(0, len(p.Kept))
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

// Work is the time to compute a segment again.
func (p Profile) Work(s Segment) (sum float64) {
	for _, t := range p.Time[s.From:s.To] {
		sum += t
	}
	return sum
}

// peak is about what a choice keeps at most.
func (p Profile) peak(segments []Segment) int64 {
	kept, most, from := int64(0), int64(0), 0
	for _, s := range segments {
		kept += p.kept(from, s.From) + p.cross(s.To)
		most = max(most, p.kept(s.From, s.To))
		from = s.To
	}
	return kept + p.kept(from, len(p.Kept)) + most
}

// within is the choice for one size of the largest segment.
func (p Profile) within(places []int, room, most int64) ([]Segment, float64) {
	if room <= 0 {
		return nil, math.Inf(1)
	}
	unit := max(1, (room+buckets-1)/buckets)
	type state struct {
		time  float64
		from  int // place and bucket it came from
		left  int
		again bool
	}
	table := make([][]state, len(places))
	for i := range table {
		table[i] = make([]state, buckets+1)
		for b := range table[i] {
			table[i][b].time = math.Inf(1)
		}
	}
	table[0][0].time = 0
	reach := func(i, b, j int, bytes int64, time float64, again bool) {
		to := b + int((bytes+unit-1)/unit)
		if to > buckets {
			return
		}
		if t := table[i][b].time + time; t < table[j][to].time {
			table[j][to] = state{t, i, b, again}
		}
	}
	for i := range places {
		for j := i + 1; j < len(places); j++ {
			kept, time := p.kept(places[i], places[j]), p.Work(Segment{places[i], places[j]})
			if kept > most && j > i+1 {
				break
			}
			for b := range table[i] {
				if math.IsInf(table[i][b].time, 1) {
					continue
				}
				reach(i, b, j, kept, 0, false)
				reach(i, b, j, p.cross(places[j]), time, true)
			}
		}
	}
	end, at := len(places)-1, 0
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
		if s.again {
			out = append(out, Segment{places[s.from], places[i]})
		}
		i, b = s.from, s.left
	}
	slices.Reverse(out)
	return out, time
}
