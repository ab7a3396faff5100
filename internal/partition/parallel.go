package partition

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A Pair is the unit of tensor parallelism (Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053, section 3): products with
// column-parallel weights, followed by a product with a row-parallel weight. Between them devices do not communicate;
// the partial sums of the second are all-reduced. A feed-forward block has one column-parallel weight, or a gate and an up
// projection; attention has the query, key and value projections, split by heads.
type Pair struct {
	Columns   []Cut `json:"column_parallel"`
	Row       Cut   `json:"row_parallel"`
	AllReduce Port  `json:"all_reduce"` // the value that is summed over devices
}

// A Cut is the division of one product's weight.
type Cut struct {
	Node      string `json:"node"`
	Weight    string `json:"weight"`
	Type      string `json:"type"`
	Axis      int    `json:"axis"`
	Bytes     int64  `json:"bytes"`
	PerDevice int64  `json:"bytes_per_device"` // maximum over devices
	Even      bool   `json:"even"`             // equal on all devices
}

// pairs finds for each product the products before it. A product is in at most one pair.
func (c *cutter) pairs(devices int64) []Pair {
	list := []Pair{}
	rows, columns := map[*ir.Node]bool{}, map[*ir.Node]bool{}
	mixed := c.mixed()
	for _, n := range c.nodes {
		if !c.product(n) || mixed[n.Input(0)] {
			continue
		}
		found, ok := c.precedingProducts(n)
		taken := func(f *ir.Node) bool { return rows[f] || columns[f] }
		fits := func(f *ir.Node) bool { return length(f, outer) == length(n, inner) }
		if !ok || !slices.ContainsFunc(found, fits) || slices.ContainsFunc(found, taken) {
			continue
		}
		p := Pair{Row: c.slice(n, inner, devices), AllReduce: c.port(n.Outputs[0], []int{0, len(c.nodes)})}
		for _, f := range found {
			p.Columns = append(p.Columns, c.slice(f, outer, devices))
			columns[f] = true
		}
		rows[n] = true
		list = append(list, p)
	}
	return list
}

// product reports whether n multiplies an activation by a constant matrix.
func (c *cutter) product(n *ir.Node) bool {
	if !ir.DefaultDomain(n.Op.Domain) || operator.Of(n).Input(1).Role != operator.Matrix || operator.Of(n).HoldsQuantized() {
		return false
	}
	x, w := n.Input(0), n.Input(1)
	return x != nil && x.Const == nil && w != nil && w.Const != nil && len(w.Const.Shape) == 2
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

func (c *cutter) slice(n *ir.Node, which int, devices int64) Cut {
	w := n.Input(1).Const
	axis, long := axisOf(n, which), max(1, length(n, which))
	each := (long + devices - 1) / devices
	return Cut{
		Node: n.Label(), Weight: n.Input(1).Name, Type: w.Spec.String(), Axis: axis, Bytes: w.Bytes(),
		PerDevice: w.Bytes() / long * each, Even: long%devices == 0,
	}
}

// mixed are the values that depend, not only through products, on a model input or an operator that mixes columns.
func (c *cutter) mixed() map[*ir.Value]bool {
	mixed := map[*ir.Value]bool{}
	for _, v := range c.graph.Inputs {
		mixed[v] = v.Const == nil
	}
	for _, n := range c.nodes {
		if c.product(n) {
			continue
		}
		through, separate := c.through(n)
		if separate && !slices.ContainsFunc(through, func(v *ir.Value) bool { return mixed[v] }) {
			continue
		}
		for _, v := range n.Outputs {
			if v != nil {
				mixed[v] = true
			}
		}
	}
	return mixed
}

// maxPath is the number of values between the products of a pair, beyond which they are none: attention has about 100.
const maxPath = 1000

// precedingProducts walks back from the activation input of n, which is not mixed, to the products before it, through operators that keep
// columns separate. ok is false if they are too far away.
func (c *cutter) precedingProducts(n *ir.Node) (found []*ir.Node, ok bool) {
	open := []*ir.Value{n.Input(0)}
	seen := map[*ir.Value]bool{}
	for len(open) > 0 {
		v := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[v] || v.Const != nil {
			continue
		}
		if seen[v] = true; len(seen) > maxPath {
			return nil, false
		}
		from := v.Producer()
		_, cut := c.at[from]
		switch {
		case !cut: // a constant
		case c.product(from):
			if !slices.Contains(found, from) {
				found = append(found, from)
			}
		default:
			through, _ := c.through(from)
			open = append(open, through...)
		}
	}
	slices.SortFunc(found, func(a, b *ir.Node) int { return c.at[a] - c.at[b] })
	return found, true
}

// The inputs of an operator that carry separate columns.
type passage int

const (
	firstOnly  passage = iota // the others are shapes and axes
	firstThree                // queries, keys and values; the others are masks and lengths
	eachFull                  // those of the output's size; others, such as masks, are equal on all devices
	each                      // all of them
)

// passageOf is known for operators that keep columns, or heads, separate.
func (c *cutter) passageOf(n *ir.Node) (how passage, known bool) {
	f := operator.Of(n)
	switch {
	case f.Elementwise == operator.Broadcasts:
		return eachFull, true
	case f.Attention:
		return firstThree, true
	case f.Product(), f.Move.Moves() && f.Variadic:
		return each, true
	case f.Distribution:
		return firstOnly, c.rank(n.Input(0)) >= 3 // of scores; of a matrix it mixes columns
	}
	return firstOnly, f.Elementwise == operator.Unary || f.Move.Moves()
}

// through is the inputs of n to follow; separate is false if n mixes columns.
func (c *cutter) through(n *ir.Node) (vs []*ir.Value, separate bool) {
	how, known := c.passageOf(n)
	if !known {
		return nil, false
	}
	inputs := n.Inputs()
	switch how {
	case firstOnly:
		inputs = inputs[:min(1, len(inputs))]
	case firstThree:
		inputs = inputs[:min(3, len(inputs))]
	}
	made := c.types.elems(n.Outputs[0])
	for _, v := range inputs {
		if v != nil && (how != eachFull || c.types.elems(v) >= made) && v.Const == nil {
			vs = append(vs, v)
		}
	}
	return vs, true
}

func (c *cutter) rank(v *ir.Value) int {
	s, _ := c.types.spec(v)
	return len(s.Shape)
}
