package coupling

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Plan is what is known of a model's channels.
type Plan struct {
	c       *pass.Context
	classes classes
	axes    map[*ir.Value]*axis // of values that nodes make
	made    []*ir.Value         // the keys of axes, in the order of the graph
	stored  map[*ir.Value]*stored
	order   []*stored // in the order in which nodes read them
	seen    map[ir.Use]bool
	sources []Source
	edits   []func(*cutting)
	unfit   func(*ir.Value) string
	refused map[*ir.Value]bool

	Refused []Refusal // constants that some node reads in a way which is not known, each once
}

// A Refusal is a constant and the reason why it is not looked at.
type Refusal struct {
	Value *ir.Value
	Why   string
}

// An axis is the one of a value's axes that holds channels which may fall. It is counted
// from the end, so that the last one is -1, as broadcasting does.
type axis struct {
	at    int
	units []Unit
}

// A Source is a constant that makes channels: the filters of a convolution, the matrix of a
// linear layer.
type Source struct {
	Value *ir.Value
	Node  *ir.Node
	Shape []int64 // in which Node sees the constant, but for a transposition
	Axis  int     // of Shape: one filter at each place
	Units []Unit
}

// Find follows the channels of every graph of c's model: main graph, subgraphs and
// functions. It changes nothing. Constants for which unfit has a reason stay whole. An error
// means that nodes form a circle.
func Find(c *pass.Context, unfit func(*ir.Value) string) (*Plan, error) {
	p := &Plan{
		c:       c,
		classes: classes{why: map[Unit]string{}},
		axes:    map[*ir.Value]*axis{},
		stored:  map[*ir.Value]*stored{},
		seen:    map[ir.Use]bool{},
		unfit:   unfit,
		refused: map[*ir.Value]bool{},
	}
	for g := range c.Model.Graphs() {
		nodes, err := g.Order()
		if err != nil {
			return nil, fmt.Errorf("graph %q: %w", g.Name, err)
		}
		for _, n := range nodes {
			p.follow(n)
		}
	}
	p.borders()
	return p, nil
}

// follow applies the rule of n's operator to the channels that it reads.
func (p *Plan) follow(n *ir.Node) {
	rule := rules[operator(n.Op)]
	switch name := pass.FromCaller(n); {
	case rule == nil || len(n.Outputs) == 0:
		p.stop(n, "is not looked through")
	case name != "":
		p.stop(n, "gets its attribute "+name+" from the function's caller")
	default:
		rule(p, n)
	}
}

// operator is the key of an operator in rules.
func operator(id ir.OpID) string {
	if ir.DefaultDomain(id.Domain) && id.Overload == "" {
		return id.Type
	}
	return id.String()
}

// in is the axis of n's input i, nil where it has no channels that may fall.
func (p *Plan) in(n *ir.Node, i int) *axis {
	v := n.Input(i)
	if v == nil || v.Graph() != n.Graph() {
		return nil
	}
	return p.axes[v]
}

// set says that v has channels.
func (p *Plan) set(v *ir.Value, at int, units []Unit) {
	if v == nil {
		return
	}
	p.axes[v] = &axis{at, units}
	p.made = append(p.made, v)
}

// stop keeps all channels that n reads, and leaves its constants alone; the reason names n.
func (p *Plan) stop(n *ir.Node, what string) {
	beside := fmt.Sprintf("no channels are followed through %s %s, which reads it", n.Op, n.Label())
	for i := range n.Inputs() {
		if a := p.in(n, i); a != nil {
			p.keep(n, a.units, what)
			beside = fmt.Sprintf("it goes with channels that reach %s %s, which %s", n.Op, n.Label(), what)
		}
	}
	for i := range n.Inputs() {
		p.refuse(n, i, beside)
	}
}

func (p *Plan) keep(n *ir.Node, us []Unit, what string) {
	p.classes.keep(us, fmt.Sprintf("%s, which %s", naming(n), what))
}

// naming is operator and name of a node.
func naming(n *ir.Node) string {
	return fmt.Sprintf("its channels reach %s %s", n.Op, n.Label())
}

// borders keeps what is seen from outside: graph outputs, values that subgraphs read, and
// constants that some node reads in a way that is not known.
func (p *Plan) borders() {
	for _, v := range p.made {
		for _, u := range v.Uses() {
			if u.Node == nil {
				p.classes.keep(p.axes[v].units, fmt.Sprintf("its channels are those of the output %q", v.Name))
			} else if u.Node.Graph() != v.Graph() {
				p.keep(u.Node, p.axes[v].units, "stands in a subgraph")
			}
		}
	}
	for _, s := range p.order {
		for _, l := range pass.Leaves(s.v) {
			if !p.seen[l] {
				s.keep(p, l)
			}
		}
	}
}
