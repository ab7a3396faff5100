package opset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Unsupported is the reason why a model cannot be raised.
type Unsupported struct {
	Node     string // the node's label
	Op       string // its operator
	Module   string // the path of its module; empty if it is not known
	From, To int64
	Reason   string
}

func (u *Unsupported) Error() string {
	return fmt.Sprintf("opset %d to %d: %s: %s", u.From, u.To, ir.Place(u.Node, ir.OpID{Type: u.Op}, u.Module), u.Reason)
}

// A reason is a rule's refusal; other errors of rules come from reading payloads.
type reason string

func (r reason) Error() string { return string(r) }

// Raise raises the default domain of m, and of each function that imports it, to
// version to; versions that are not below it stay. It rewrites every node that
// means something else there, or none: where a node cannot be rewritten it returns
// an *Unsupported and m is as it was. IRVersion stays; see the function of that name.
// It reads payloads of a few elements. New constants are initializers, not inputs. Declared shapes of results that no
// run can have are replaced by inferred ones: later opsets infer more, so that they would make the model invalid.
func Raise(ctx context.Context, e *ir.Eval, m *ir.Model, to int64) error {
	p, err := plan(ctx, e, m, to)
	if err != nil {
		return err
	}
	p.commit()
	raised := m.Opset("") < to
	for i := range m.Opsets {
		raiseImport(&m.Opsets[i], to)
	}
	// New nodes are of the default domain, which a model of other operators need not import.
	if m.Opset("") == 0 {
		m.Opsets = append(m.Opsets, ir.Opset{Version: to})
	}
	for _, f := range m.Functions {
		for i := range f.Opsets {
			raiseImport(&f.Opsets[i], to)
		}
	}
	if raised {
		correctShapes(m)
	}
	return nil
}

// correctShapes replaces the declared shapes of results that contradict those that follow from the nodes.
func correctShapes(m *ir.Model) {
	f := ShapesFor(map[*ir.Value][]int64{}).inference // which takes nothing but inputs as declared
	for g := range m.Graphs() {
		for n := range g.Nodes() {
			for i, v := range n.Outputs {
				if v == nil || v.Type == nil || v.Type.Shape == nil {
					continue
				}
				if s, ok := f.inferred(n, i); ok && !slices.EqualFunc(s, v.Type.Shape, canBeEqual) {
					t := *v.Type
					t.Shape = s
					v.Type = &t
				}
			}
		}
	}
}

func canBeEqual(a, b ir.Dim) bool { return !a.Known() || !b.Known() || a.N == b.N }

// CanRaise returns what Raise would return, and changes nothing.
func CanRaise(ctx context.Context, e *ir.Eval, m *ir.Model, to int64) error {
	_, err := plan(ctx, e, m, to)
	return err
}

func raiseImport(o *ir.Opset, to int64) {
	if ir.DefaultDomain(o.Domain) {
		o.Version = max(o.Version, to)
	}
}

// A planner collects the drafts of all nodes before any of them takes effect.
type planner struct {
	ctx       context.Context
	eval      *ir.Eval
	to        int64
	rules     map[step]rewrite
	drafts    []*draft
	shapes    *inference
	constants map[constKey]*ir.Value
}

// A step is a change of an operator: its name and the version that brings it.
type step struct {
	op string
	to int64
}

func plan(ctx context.Context, e *ir.Eval, m *ir.Model, to int64) (*planner, error) {
	if to < 1 || to > Newest {
		return nil, fmt.Errorf("opset %d is not known; the newest is %d", to, Newest)
	}
	p := &planner{ctx: ctx, eval: e, to: to, rules: index(rules), shapes: newInference(unbounded),
		constants: map[constKey]*ir.Value{}}
	own := functionIDs(m)
	for g := range m.Graphs() {
		from := g.Opset("")
		if from >= to {
			continue
		}
		for n := range g.Nodes() {
			if !ir.DefaultDomain(n.Op.Domain) || own[ir.OpID{Type: n.Op.Type, Overload: n.Op.Overload}] {
				continue
			}
			if err := p.node(n, from); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// functionIDs are the model's own functions of the default domain; their
// calls are no operators.
func functionIDs(m *ir.Model) map[ir.OpID]bool {
	own := map[ir.OpID]bool{}
	for _, f := range m.Functions {
		if ir.DefaultDomain(f.ID.Domain) {
			own[ir.OpID{Type: f.ID.Type, Overload: f.ID.Overload}] = true
		}
	}
	return own
}

// node plans the rewrite of n.
func (p *planner) node(n *ir.Node, from int64) error {
	d := newDraft(p, n)
	err := d.raise(from)
	if err == nil {
		if d.changed {
			p.drafts = append(p.drafts, d)
		}
		return nil
	}
	var why reason
	if errors.As(err, &why) {
		return &Unsupported{Node: n.Label(), Op: n.Op.Type, Module: n.Module, From: from, To: p.to, Reason: string(why)}
	}
	return fmt.Errorf("%s: %w", n.Place(), err)
}

func (p *planner) commit() {
	for _, d := range p.drafts {
		d.commit()
	}
}
