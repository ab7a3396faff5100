package partition

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/report/partition"
)

// A split is the division of an axis of a value: blocks that follow one another on the axis, such as packed queries,
// keys and values, each of which is divided over the devices in the same proportions.
type split struct {
	axis   int
	blocks []int64
}

func (s split) equal(t split) bool { return s.axis == t.axis && slices.Equal(s.blocks, t.blocks) }

func (s split) length() (n int64) {
	for _, b := range s.blocks {
		n += b
	}
	return n
}

// A division is a pair with its nodes: the products, and the nodes between them, each of which computes a part on each
// device.
type division struct {
	*cutter
	row         *ir.Node
	columns     []*ir.Node
	nodes       []*ir.Node           // the column-parallel products and the nodes between, consumers before producers
	values      map[*ir.Value]split  // outputs of nodes
	inputSplits map[*ir.Node][]split // by input; without blocks for inputs that are read as a whole
	lengths     []int64              // of blocks and heads, which have to be divided into whole numbers
	open        nodeHeap
	queued      map[*ir.Node]bool
}

// divisions finds for each product the products before it. A product is in at most one pair.
func (c *cutter) divisions() []*division {
	var list []*division
	if c.types.sizes == nil || c.types.wider == nil {
		return nil
	}
	taken := map[*ir.Node]bool{}
	for _, n := range c.nodes {
		// The sum of the pair is passed between files, so that a cut after it has to be possible.
		if !c.product(n) || c.bars[c.at[n]+1] {
			continue
		}
		if d := c.divide(n, taken); d != nil {
			list = append(list, d)
			taken[n] = true
			for _, f := range d.columns {
				taken[f] = true
			}
		}
	}
	return list
}

// pairs describes the divisions over a number of devices.
func (c *cutter) pairs(devices int64) []partition.Pair {
	list := []partition.Pair{}
	for _, d := range c.divisions() {
		list = append(list, d.pair(devices))
	}
	return list
}

func (d *division) pair(devices int64) partition.Pair {
	p := partition.Pair{
		Row:       d.cut(d.row, inner, devices),
		AllReduce: d.port(d.row.Outputs[0], []int{0, len(d.cutter.nodes)}),
		Parts:     d.parts(),
	}
	for _, f := range d.columns {
		p.Columns = append(p.Columns, d.cut(f, outer, devices))
	}
	if p.Parts < devices {
		p.Refused = fmt.Sprintf("%d heads or columns cannot be divided over %d devices", p.Parts, devices)
	}
	return p
}

// product reports whether n multiplies an activation by a constant matrix.
func (c *cutter) product(n *ir.Node) bool {
	if !ir.DefaultDomain(n.Op.Domain) || operator.Of(n).Input(1).Role != operator.Matrix ||
		operator.Of(n).HoldsQuantized() {
		return false
	}
	x, w := n.Input(0), n.Input(1)
	return x != nil && x.Const == nil && w != nil && w.Const != nil && len(w.Const.Shape) == 2 &&
		w.Const.DType.Bits() >= 8
}

// The reduction axis of a weight, and the axis of its output columns.
const (
	inner = 0
	outer = 1
)

// axisOf is the index of the axis in the weight of n.
func axisOf(n *ir.Node, which int) int {
	axes, _ := operator.Of(n).Input(1).Axes(n, 2)
	if which == outer {
		return axes.Output[0]
	}
	return axes.Reduction[0]
}

func length(n *ir.Node, which int) int64 { return n.Input(1).Const.Shape[axisOf(n, which)] }

func (d *division) cut(n *ir.Node, which int, devices int64) partition.Cut {
	w := n.Input(1).Const
	parts := d.parts()
	each := (parts + devices - 1) / devices
	return partition.Cut{
		Node: n.Label(), Weight: n.Input(1).Name, Type: w.Spec.String(), Axis: axisOf(n, which), Bytes: w.Bytes(),
		PerDevice: w.Bytes() / parts * each, Even: parts%devices == 0,
	}
}

// parts is the number of equal parts of the division: the greatest common divisor of the lengths of all divided axes.
func (d *division) parts() int64 {
	var parts int64
	for _, n := range d.lengths {
		// Euclid's algorithm. Parts of that number are whole numbers of heads and of columns on every divided axis.
		for n > 0 {
			parts, n = n, parts%n
		}
	}
	return max(1, parts)
}

// maxBetween is the number of nodes between the products of a pair, beyond which they are none: attention has about
// 100.
const maxBetween = 1000

// divide walks back from the activation input of row, divided along the reduction axis, through operators that keep the
// parts separate, to the products before it. Consumers are visited before producers: a value is divided if all its
// consumers read it so, and otherwise each device has the whole value and takes its part of it. The result is nil if
// there is no product whose columns are divided.
func (c *cutter) divide(row *ir.Node, taken map[*ir.Node]bool) *division {
	d := &division{
		cutter:      c,
		row:         row,
		values:      map[*ir.Value]split{},
		inputSplits: map[*ir.Node][]split{},
		queued:      map[*ir.Node]bool{},
	}
	x := row.Input(0)
	axes, ok := operator.Of(row).Input(0).Axes(row, c.rank(x))
	if !ok || len(axes.Reduction) != 1 || row.Outputs[0].Ambiguous {
		return nil
	}
	k := length(row, inner)
	d.readPart(row, 0, split{axes.Reduction[0], []int64{k}})
	d.readPart(row, 1, split{axisOf(row, inner), []int64{k}})
	for len(d.open) > 0 {
		if len(d.nodes) > maxBetween {
			return nil
		}
		d.visit(heap.Pop(&d.open).(visit).node, taken)
	}
	if len(d.columns) == 0 {
		return nil
	}
	// They were found from consumers to producers: query, key and value are listed in the order of the graph.
	slices.Reverse(d.columns)
	return d
}

// visit divides the outputs of n if all their consumers read them divided and n can compute its part of them.
func (d *division) visit(n *ir.Node, taken map[*ir.Node]bool) {
	outs := make([]split, len(n.Outputs))
	for i, v := range n.Outputs {
		if v == nil || len(v.Uses()) == 0 {
			continue
		}
		outs[i], _ = d.demand(v)
		if len(outs[i].blocks) > 0 && !d.agreed(v, outs[i]) {
			return
		}
	}
	ins, lengths, ok := d.inputs(n, outs, taken)
	if !ok {
		return
	}
	// Again, as the rule of the operator may have added divisions of outputs that no consumer reads divided, such
	// as those of a Split.
	for i, v := range n.Outputs {
		if v == nil || len(v.Uses()) == 0 {
			continue
		}
		if len(outs[i].blocks) == 0 || !d.agreed(v, outs[i]) || !d.static(v, outs[i]) {
			return
		}
	}
	for i, v := range n.Outputs {
		if v != nil && len(outs[i].blocks) > 0 {
			d.values[v] = outs[i]
		}
	}
	if d.product(n) {
		d.columns = append(d.columns, n)
	}
	d.nodes = append(d.nodes, n)
	d.lengths = append(d.lengths, lengths...)
	for i, s := range ins {
		if len(s.blocks) > 0 {
			d.readPart(n, i, s)
		}
	}
}

// inputs are the divisions of n's inputs for those of its outputs, of which it adds missing ones.
func (d *division) inputs(n *ir.Node, outs []split, taken map[*ir.Node]bool) (ins []split, lengths []int64, ok bool) {
	if d.product(n) {
		if last := d.rank(n.Outputs[0]) - 1; taken[n] || outs[0].axis != last {
			return nil, nil, false
		}
		return d.columnInputs(n, outs[0])
	}
	r := &rule{division: d, n: n, outs: outs, ins: make([]split, len(n.Inputs()))}
	if !r.apply() {
		return nil, nil, false
	}
	return r.ins, r.lengths, true
}

// columnInputs divides the weight and the bias of a product.
func (d *division) columnInputs(n *ir.Node, out split) (ins []split, lengths []int64, ok bool) {
	ins = make([]split, len(n.Inputs()))
	ins[1], ok = split{axisOf(n, outer), out.blocks}, true
	if bias := n.Input(2); bias != nil {
		ins[2], ok = d.broadcast(n.Outputs[0], bias, out)
	}
	return ins, nil, ok
}

// readPart records that n reads a part of its input i.
func (d *division) readPart(n *ir.Node, i int, s split) {
	if d.inputSplits[n] == nil {
		d.inputSplits[n] = make([]split, len(n.Inputs()))
	}
	d.inputSplits[n][i] = s
	d.lengths = append(d.lengths, s.blocks...)
	from := n.Input(i).Producer()
	// A max-heap by position: a node is visited after all of its consumers, so that its outputs have all their
	// readers.
	if at, partitioned := d.at[from]; partitioned && !d.queued[from] {
		d.queued[from] = true
		heap.Push(&d.open, visit{from, at})
	}
}

// demand is the division in which a consumer reads v, false if none does.
func (d *division) demand(v *ir.Value) (split, bool) {
	for _, u := range v.Uses() {
		if reads := d.inputSplits[u.Node]; reads != nil && len(reads[u.Index].blocks) > 0 {
			return reads[u.Index], true
		}
	}
	return split{}, false
}

// agreed reports whether v can be divided by s: all consumers read it so. Exceptions are nodes that read the shape of v
// only, and outputs of the model, whose parts are concatenated.
func (d *division) agreed(v *ir.Value, s split) bool {
	if v.Ambiguous {
		return false
	}
	for _, u := range v.Uses() {
		reads := d.inputSplits[u.Node]
		switch {
		case u.Node == nil:
			if u.Graph != d.graph || len(s.blocks) != 1 {
				return false
			}
		case reads != nil && reads[u.Index].equal(s), u.Node.Op.Is("Shape") && u.Node.Graph() == d.graph:
		default:
			return false
		}
	}
	return true
}

// static reports whether the divided axis of v has the length of s, whatever the dynamic axes.
func (d *division) static(v *ir.Value, s split) bool {
	a, b, ok := d.shapes(v)
	return ok && s.axis < len(a) && a[s.axis] == s.length() && b[s.axis] == s.length()
}

// shapes are the shapes of v in the two planned runs.
func (d *division) shapes(v *ir.Value) (a, b []int64, ok bool) {
	if v == nil || v.Ambiguous {
		return nil, nil, false
	}
	if v.Const != nil {
		return v.Const.Shape, v.Const.Shape, true
	}
	s, known := d.types.sizes[v.Name]
	w, also := d.types.wider[v.Name]
	return s.Shape, w.Shape, known && also && len(s.Shape) == len(w.Shape)
}

func (c *cutter) rank(v *ir.Value) int {
	s, _ := c.types.spec(v)
	return len(s.Shape)
}

// A visit is a node in the queue of a division.
type visit struct {
	node *ir.Node
	at   int
}

// A nodeHeap has the last node on top.
type nodeHeap []visit

func (h nodeHeap) Len() int           { return len(h) }
func (h nodeHeap) Less(i, j int) bool { return h[i].at > h[j].at }
func (h nodeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nodeHeap) Push(v any)        { *h = append(*h, v.(visit)) }
func (h *nodeHeap) Pop() any {
	last := len(*h) - 1
	v := (*h)[last]
	*h = (*h)[:last]
	return v
}
