package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// A compiler turns graphs into programs.
type compiler struct {
	account *op.Account
	ctx     context.Context
	model   *ir.Model
	opt     Options
	eval    *ir.Eval
	keep    map[string]bool
	consts  map[*ir.Tensor]*constant
	depth   int // of subgraphs
}

// maxDepth bounds the nesting of subgraphs.
const maxDepth = 64

// A scope maps the values of one graph, or of one function call, to slots.
type scope struct {
	prog  *program
	slots map[*ir.Value]int
	outer *scope // enclosing graph of a subgraph
	attrs map[string]*ir.Attr
	label string // of the function call: prefix of its node names
	top   bool   // main graph
}

// place names n in errors.
func (s *scope) place(n *ir.Node) string { return ir.Place(s.label+n.Label(), n.Op, n.Module) }

func (c *compiler) main() (*program, error) {
	if err := c.model.VerifyCalls(); err != nil {
		return nil, err
	}
	// ONNX Runtime refuses such a model. Operators here have other types than theirs where they widen or take any, so
	// that it would run and be called right.
	if v, ok := opset.CheckTypes(c.model); ok {
		return nil, fmt.Errorf("not a valid model: %s", v)
	}
	p := &program{names: map[string]int{}}
	s := &scope{prog: p, slots: map[*ir.Value]int{}, top: true}
	if err := c.graph(s, c.model.Graph); err != nil {
		return nil, err
	}
	p.prune()
	return p, nil
}

// graph compiles a main graph or the body of a control operator into s.prog.
func (c *compiler) graph(s *scope, g *ir.Graph) error {
	for _, v := range g.Inputs {
		i := s.slot(c, v)
		// An overridable initializer is a constant here: the engine does not support overriding.
		if v.Initializer() != nil {
			continue
		}
		s.prog.inputs = append(s.prog.inputs, i)
		// Fusions compare ranks before any shape is known.
		if s.top && v.Type != nil {
			s.prog.slots[i].rank = len(v.Type.Shape)
		}
	}
	if err := c.nodes(s, g); err != nil {
		return err
	}
	for _, v := range g.Outputs {
		i, err := c.valueSlot(s, v)
		if err != nil {
			return fmt.Errorf("graph output %q: %w", v.Name, err)
		}
		s.prog.outputs, s.prog.types = append(s.prog.outputs, i), append(s.prog.types, v.Type)
		if i == absent {
			continue
		}
		s.prog.slots[i].keep = true
		if s.top {
			s.prog.names[v.Name] = i
		}
	}
	return nil
}

func (c *compiler) nodes(s *scope, g *ir.Graph) error {
	nodes, err := g.Order()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.node(s, n); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) node(s *scope, n *ir.Node) error {
	if f := n.Callee(); f != nil {
		return c.call(s, n, f)
	}
	id, version := n.Op, n.Graph().Opset(n.Op.Domain)
	if id.Domain == op.Newest {
		id.Domain = ""
	}
	// ONNX requires the import; ONNX Runtime does not.
	if version == 0 && !ir.DefaultDomain(n.Op.Domain) {
		version = 1 // models use com.microsoft without importing it
	}
	row := lookup(id, version)
	if row == nil {
		return &Unsupported{Node: s.label + n.Label(), Op: n.Op, Module: n.Module, Version: version}
	}
	attrs := s.resolve(n.Attrs)
	arrays, err := c.arrays(attrs)
	if err != nil {
		return fmt.Errorf("%s: %w", s.place(n), err)
	}
	st := &step{Node: op.NewNode(id, version, attrs, arrays), op: row}
	st.Label, st.Module, st.Seed = s.label+n.Label(), n.Module, c.opt.Seed
	st.NumIn = len(n.Inputs())
	if st.in, err = c.valueSlots(s, n.Inputs()); err != nil {
		return st.wrap(err)
	}
	if err := c.bodies(s, st, attrs); err != nil {
		return err
	}
	if row.Run == nil && !row.View && st.bodies == nil {
		return st.wrap(errors.New("no subgraph"))
	}
	for _, v := range n.Outputs {
		st.out = append(st.out, s.define(c, v))
		st.Consumed = append(st.Consumed, v != nil)
	}
	s.prog.steps = append(s.prog.steps, st)
	return nil
}

// bodies compiles the graphs among the attributes. Outer values that they read become further inputs of the step.
func (c *compiler) bodies(s *scope, st *step, attrs []*ir.Attr) error {
	// Each level is a level of the stack, here and when it runs.
	if c.depth++; c.depth > maxDepth {
		return st.wrap(fmt.Errorf("subgraphs are nested more than %d levels deep", maxDepth))
	}
	defer func() { c.depth-- }()
	for _, a := range attrs {
		if a.Graph == nil {
			continue
		}
		inner := &scope{prog: &program{}, slots: map[*ir.Value]int{}, outer: s, attrs: s.attrs, label: st.Label + "/"}
		if err := c.graph(inner, a.Graph); err != nil {
			return err
		}
		inner.prog.prune()
		if st.bodies == nil {
			st.bodies = map[string]*program{}
		}
		st.bodies[a.Name] = inner.prog
	}
	// In the order of names, as the order of inputs must not depend on that of a map.
	for _, name := range sortedKeys(st.bodies) {
		for i, cp := range st.bodies[name].captures {
			st.bodies[name].captures[i].outer = len(st.in) // from now on an index of the step's inputs
			st.in = append(st.in, cp.outer)
		}
	}
	return nil
}

// call inlines function f at node n.
func (c *compiler) call(s *scope, n *ir.Node, f *ir.Function) error {
	inner := &scope{prog: s.prog, slots: map[*ir.Value]int{}, attrs: map[string]*ir.Attr{},
		label: s.label + n.Label() + "/"}
	for _, a := range s.resolve(n.Attrs) {
		inner.attrs[a.Name] = a
	}
	args, err := c.valueSlots(s, n.Inputs())
	if err != nil {
		return fmt.Errorf("%s: %w", s.place(n), err)
	}
	for i, v := range f.Body.Inputs {
		// A parameter without an argument is an absent input of the nodes that read it, not a value without a producer.
		inner.slots[v] = absent
		if i < len(args) {
			inner.slots[v] = args[i]
		}
	}
	if err := c.nodes(inner, f.Body); err != nil {
		return err
	}
	for i, v := range f.Body.Outputs {
		if i >= len(n.Outputs) || n.Outputs[i] == nil {
			continue
		}
		made, err := c.valueSlot(inner, v)
		if err != nil {
			return fmt.Errorf("%s: output %q: %w", s.place(n), v.Name, err)
		}
		s.slots[n.Outputs[i]] = made
		c.named(s, made, n.Outputs[i])
	}
	return nil
}

// resolve replaces attribute references of the function's nodes by the attributes of the call. References without a
// value are dropped.
func (s *scope) resolve(attrs []*ir.Attr) []*ir.Attr {
	out := make([]*ir.Attr, 0, len(attrs))
	for _, a := range attrs {
		if a.Ref == "" {
			out = append(out, a)
			continue
		}
		if given := s.attrs[a.Ref]; given != nil {
			named := *given
			named.Name = a.Name
			out = append(out, &named)
		}
	}
	return out
}

// typeProto is the first AttrType of type values, which no operator reads at run time.
const typeProto = 13

// arrays reads the tensors among the attributes.
func (c *compiler) arrays(attrs []*ir.Attr) (map[string]*ir.Array, error) {
	var out map[string]*ir.Array
	for _, a := range attrs {
		if a.Elided && a.Type < typeProto {
			return nil, fmt.Errorf("attribute %q: unsupported size or data type", a.Name)
		}
		if a.Tensor == nil {
			continue
		}
		if out == nil {
			out = map[string]*ir.Array{}
		}
		t, err := readTensor(c.ctx, c.eval, c.account, a.Tensor)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", a.Name, err)
		}
		out[a.Name] = t
	}
	return out, nil
}

func (c *compiler) valueSlots(s *scope, vs []*ir.Value) ([]int, error) {
	slots := make([]int, len(vs))
	for i, v := range vs {
		slots[i] = absent
		if v == nil {
			continue
		}
		var err error
		if slots[i], err = c.valueSlot(s, v); err != nil {
			return nil, err
		}
	}
	return slots, nil
}

// valueSlot is the slot of v in scope s.
func (c *compiler) valueSlot(s *scope, v *ir.Value) (int, error) {
	if i, ok := s.slots[v]; ok {
		return i, nil
	}
	if v.Initializer() != nil {
		return s.slot(c, v), nil
	}
	if s.outer == nil {
		return 0, fmt.Errorf("value %q has no producer", v.Name)
	}
	outer, err := c.valueSlot(s.outer, v)
	if err != nil || outer == absent {
		return outer, err
	}
	// A constant needs no capture: the subgraph shares it, and its uses count there.
	inner := s.prog.add(slot{name: v.Name, constant: s.outer.prog.slots[outer].constant})
	if s.prog.slots[inner].constant == nil {
		s.prog.captures = append(s.prog.captures, capture{outer, inner})
	}
	s.slots[v] = inner
	return inner, nil
}

// define creates the slot of a node output.
func (s *scope) define(c *compiler, v *ir.Value) int {
	if v == nil {
		return absent
	}
	return s.slot(c, v)
}

func (s *scope) slot(c *compiler, v *ir.Value) int {
	i := s.prog.add(slot{name: v.Name})
	if t := v.Initializer(); t != nil {
		s.prog.slots[i].constant = c.constant(t)
	}
	s.slots[v] = i
	c.named(s, i, v)
	return i
}

// named makes slot i fetchable under the name of v.
func (c *compiler) named(s *scope, i int, v *ir.Value) {
	if !s.top || !c.opt.KeepAll && !c.keep[v.Name] {
		return
	}
	s.prog.slots[i].keep = true
	s.prog.names[v.Name] = i
}

func (c *compiler) constant(t *ir.Tensor) *constant {
	k := c.consts[t]
	if k == nil {
		k = &constant{tensor: t, array: &ir.Array{DType: t.DType, Shape: t.Shape}}
		c.consts[t] = k
	}
	return k
}

// prune removes steps whose outputs have no consumer (dead code), and records which outputs are needed.
func (p *program) prune() {
	wanted := make([]bool, len(p.slots))
	for i, s := range p.slots {
		wanted[i] = s.keep
	}
	var kept []*step
	for _, s := range slices.Backward(p.steps) {
		// A step that updates its inputs is needed without consumers.
		needed := len(s.op.Writes) > 0
		for i, o := range s.out {
			s.Consumed[i] = o != absent && wanted[o]
			needed = needed || s.Consumed[i]
		}
		if !needed {
			continue
		}
		for _, i := range s.in {
			if i != absent {
				wanted[i] = true
			}
		}
		kept = append(kept, s)
	}
	slices.Reverse(kept)
	p.steps = kept
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Unsupported is the error of a model with an operator that the engine does not implement.
type Unsupported struct {
	Node    string
	Op      ir.OpID
	Module  string
	Version int64
}

// Error names the node, its operator and its module.
func (m *Unsupported) Error() string {
	return fmt.Sprintf("%s: operator of opset %d is not supported by the engine", ir.Place(m.Node, m.Op, m.Module),
		m.Version)
}
