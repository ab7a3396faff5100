package prune

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A segment is the part of a graph between two nodes of a trunk. Apart from values that several parts of the graph read
// and from inputs of its own, it reads results of the node before it, and only results of its last node are read after
// it.
type segment struct {
	before, last *ir.Node
	nodes        []*ir.Node // the last node included, in an order that is the same for segments of one kind
	// graph inputs that no other segment reads, such as past keys and values, in such an order, too
	inputs []*ir.Value
	kind   string // the same for segments of equal operators, attributes, shapes of weights and edges

	// normalization is the type of the operator that normalizes like those that add the residual and normalize the sum;
	// empty if there are none. A segment then ends with the sum, and the normalization is the first part of the next
	// one, to which its scale belongs.
	normalization string
}

// A partition divides the nodes of a graph between the segments of a trunk.
type partition struct {
	*flow
	trunk trunk
	// of nodes that descend from the trunk: position of the last node of the trunk that they descend from, or are
	depth     map[*ir.Node]int
	entry     *ir.Node          // before the first node of the trunk, which reads no other; nil if there is none
	bypassed  bool              // other nodes that read the entry bypass those of the trunk
	bounds    []int             // positions of the nodes between segments, -1 for the entry
	segmentOf map[*ir.Node]int  // the segment of a node
	readBy    map[*ir.Value]int // the segment that alone reads a graph input
}

// elsewhere is the segment of what several segments read, or none.
const elsewhere = -1

// segments are those of t in order, nil if there are fewer than two. The entry may be before the first layer, whose
// residual bypasses the nodes of t then, or inside of it, such as keys whose number is that of past positions: bypassed
// is the first.
func (f *flow) segments(t trunk, bypassed bool) []segment {
	p := &partition{flow: f, trunk: t, entry: f.entry(t), bypassed: bypassed, segmentOf: map[*ir.Node]int{},
		readBy: map[*ir.Value]int{}}
	p.descend()
	p.cut()
	if len(p.bounds) < 3 {
		return nil
	}
	p.assign()
	p.assignResults()
	return p.segmentsWithNodes()
}

// entry is the node whose result the first node of t reads, and no other.
func (f *flow) entry(t trunk) *ir.Node {
	vs := slices.Compact(f.outer(t[0]))
	if len(vs) != 1 || vs[0].Producer() == nil || stream(vs[0].Producer()) != vs[0] {
		return nil
	}
	return vs[0].Producer()
}

// descend finds the depth of nodes.
func (p *partition) descend() {
	p.depth = map[*ir.Node]int{}
	for i, n := range p.trunk {
		p.depth[n] = i
	}
	for _, n := range p.nodes {
		if p.isTrunk(n) {
			continue
		}
		for _, v := range p.outer(n) {
			if d, ok := p.depth[v.Producer()]; ok {
				p.depth[n] = max(p.depth[n], d)
			}
		}
	}
}

func (p *partition) isTrunk(n *ir.Node) bool {
	d, ok := p.depth[n]
	return ok && p.trunk[d] == n
}

// position is that of the node of the trunk before n, a descendant of it.
func (p *partition) position(n *ir.Node) int {
	if p.isTrunk(n) {
		return p.depth[n] - 1
	}
	return p.depth[n]
}

// cut finds the nodes of the trunk that other values do not bypass.
func (p *partition) cut() {
	change := make([]int, len(p.trunk)+1) // of the number of bypassing values, by position
	for _, n := range p.nodes {
		if _, ok := p.depth[n]; !ok {
			continue
		}
		for _, v := range p.outer(n) {
			from, ok := p.depth[v.Producer()]
			if p.bypassed && p.entry != nil && v.Producer() == p.entry {
				from, ok = -1, true
			}
			if ok && from < p.position(n) {
				// Changes at both ends of a value's life, which are summed below: linear in the number of values.
				change[from+1]++
				change[p.position(n)+1]--
			}
		}
	}
	if p.entry != nil && !isQuantized(p.entry) {
		p.bounds = append(p.bounds, -1)
	}
	bypassing := 0
	for i, n := range p.trunk {
		if bypassing += change[i]; bypassing == 0 && !isQuantized(n) {
			p.bounds = append(p.bounds, i)
		}
	}
}

// isQuantized reports whether the result of n is quantized data: the scale is part of what reads it.
func isQuantized(n *ir.Node) bool {
	f := operator.Of(n)
	for f.Move != operator.Computes && n.Input(0) != nil && n.Input(0).Producer() != nil {
		n = n.Input(0).Producer()
		f = operator.Of(n)
	}
	return f.QuantizedOutput
}

// node is the one at a position of the trunk.
func (p *partition) node(position int) *ir.Node {
	if position < 0 {
		return p.entry
	}
	return p.trunk[position]
}

// assign finds the segments of nodes and graph inputs. What does not descend from the trunk is part of a segment if no
// other one reads it.
func (p *partition) assign() {
	for _, n := range slices.Backward(p.nodes) {
		if _, ok := p.depth[n]; ok {
			p.segmentOf[n] = p.segmentAt(p.position(n))
		}
		s, ok := p.segmentOf[n]
		if !ok || s == elsewhere {
			p.segmentOf[n] = elsewhere
			continue
		}
		for _, v := range p.outer(n) {
			if m := v.Producer(); m == nil {
				claim(p.readBy, v, s)
			} else if m == p.entry && n == p.trunk[0] {
				continue
			} else if _, ok := p.depth[m]; !ok {
				claim(p.segmentOf, m, s)
			}
		}
	}
}

// segmentAt is the segment after the given position of the trunk.
func (p *partition) segmentAt(position int) int {
	i, found := slices.BinarySearch(p.bounds, position)
	if !found {
		i--
	}
	if i == len(p.bounds)-1 {
		return elsewhere
	}
	return i
}

func claim[K comparable](of map[K]int, k K, segment int) {
	if old, ok := of[k]; ok && old != segment {
		segment = elsewhere
	}
	of[k] = segment
}

// assignResults makes nodes that lead to no segment, only to graph outputs, part of the one segment that they read.
func (p *partition) assignResults() {
	leads := map[*ir.Node]bool{}
	for _, n := range slices.Backward(p.nodes) {
		if _, ok := p.depth[n]; ok || leads[n] {
			for _, v := range p.outer(n) {
				leads[v.Producer()] = true
			}
		}
	}
	for _, n := range p.nodes {
		if _, ok := p.depth[n]; ok || leads[n] {
			continue
		}
		read := map[int]bool{}
		for _, v := range p.outer(n) {
			if s, ok := p.segmentOf[v.Producer()]; ok && s != elsewhere {
				read[s] = true
			}
		}
		for s := range read {
			if len(read) == 1 {
				p.segmentOf[n] = s
			}
		}
	}
}

// segmentsWithNodes are the segments with their nodes.
func (p *partition) segmentsWithNodes() []segment {
	list := make([]segment, len(p.bounds)-1)
	members := make([][]*ir.Node, len(list))
	for _, n := range p.nodes {
		if s := p.segmentOf[n]; s != elsewhere {
			members[s] = append(members[s], n)
		}
	}
	normalization := p.trunk.normalization()
	for i := range list {
		list[i] = segment{before: p.node(p.bounds[i]), last: p.node(p.bounds[i+1]), normalization: normalization}
		d := &description{
			segment: &list[i],
			flow:    p.flow,
			inside:  func(n *ir.Node) bool { return p.segmentOf[n] == i },
			isOwn:   func(v *ir.Value) bool { s, ok := p.readBy[v]; return ok && s == i },
			numbers: map[*ir.Node]int{},
		}
		d.write(members[i])
	}
	return list
}
