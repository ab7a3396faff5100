package pass

import (
	"fmt"
	"runtime/debug"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// Run runs steps over c.Model in order, verifies the model before, between and after
// them, and returns the ledger. A bug in a method becomes an error that names it.
func Run(c *Context, steps []Options) ([]Row, error) {
	steps, err := resolveAll(steps)
	if err != nil {
		return nil, err
	}
	if err := c.Model.Verify(); err != nil {
		return nil, err
	}
	c.consts = map[constKey]*ir.Value{}
	irVersion := c.Model.IRVersion
	for i, s := range steps {
		c.Later = steps[i+1:]
		if err := c.step(s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Method().Name, err)
		}
		if err := c.Model.Verify(); err != nil {
			return nil, fmt.Errorf("%s: the result is not a valid model: %w", s.Method().Name, err)
		}
	}
	c.finish(irVersion)
	for g := range c.Model.Graphs() {
		if err := order(g); err != nil {
			return nil, fmt.Errorf("graph %q: %w", g.Name, err)
		}
	}
	return c.rows, nil
}

// resolveAll checks options before the first step runs.
func resolveAll(steps []Options) ([]Options, error) {
	all := make([]Options, len(steps))
	for i, s := range steps {
		var err error
		if all[i], err = resolved(s); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return all, nil
}

// A Bug is a panic in a method. Its message is one line; Stack is the stack trace.
type Bug struct {
	Method string
	Value  any
	Stack  []byte
}

func (b *Bug) Error() string {
	return fmt.Sprintf("internal error: %v; please report it with the model", b.Value)
}

func (c *Context) step(s Options) (err error) {
	c.Method, c.Select, c.seen, c.params = s.Method().Name, s.Selected(), map[*ir.Value]bool{}, map[*ir.Value]bool{}
	c.Select.searched = c.Searched
	c.first = len(c.rows)
	before := c.constants()
	consumers := make([][]*ir.Node, len(before))
	for i, v := range before {
		consumers[i] = Consumers(v)
		c.params[v] = IsQuantizationParam(v)
	}
	defer func() {
		if r := recover(); r != nil {
			err = &Bug{Method: s.Method().Name, Value: r, Stack: debug.Stack()}
		}
	}()
	if err := c.checkPatterns(s); err != nil {
		return err
	}
	if err := s.Run(c); err != nil {
		return err
	}
	// Every constant has a row: those without one are unsupported.
	for i, v := range before {
		if !c.seen[v] && !c.params[v] && v.Const != nil {
			c.Skip(v, consumers[i], c.unsupported(v, consumers[i]))
		}
	}
	return nil
}

// constants are the model's constants of rank 1 or more, in file order.
func (c *Context) constants() []*ir.Value {
	var vs []*ir.Value
	for g := range c.Model.Graphs() {
		for _, v := range g.Consts() {
			if len(v.Const.Shape) > 0 {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// unsupported is the reason for the row of a constant that the method added none for.
func (c *Context) unsupported(v *ir.Value, consumers []*ir.Node) Reason {
	switch {
	case !v.Const.DType.IsFloat() && isQuantized(v):
		return Reason{Code: Already, Detail: v.Const.DType.String()}
	case !v.Const.DType.IsFloat():
		return Reason{Code: NoWeight, Detail: v.Const.DType.String()}
	case c.Select.Excludes(v, consumers):
		return c.Select.Reason(v, consumers)
	}
	return unsupportedUse(v)
}

// UnsupportedUse is why v, no consumer of which a method supports, is skipped.
func unsupportedUse(v *ir.Value) Reason {
	if len(v.Uses()) == 0 {
		return Reason{Code: Unused}
	}
	for _, l := range LeafUses(v) {
		if l.Node != nil {
			return UnsupportedInput(l.Node, l.Index)
		}
	}
	return Reason{Code: GraphOutput}
}

// UnsupportedInput is why input i of n is skipped where a method does not support it.
func UnsupportedInput(n *ir.Node, i int) Reason {
	label := Labels([]*ir.Node{n})[0]
	if operator.Of(n).Input(i).Role == operator.Bias {
		return Reason{Code: Bias, Node: label}
	}
	return Reason{Code: Unsupported, Node: label, Detail: fmt.Sprintf("input %d", i)}
}

// order sorts g if a node is before a producer of its inputs, which checkers reject and some runtimes accept.
func order(g *ir.Graph) error {
	seen := map[*ir.Node]bool{}
	for n := range g.Nodes() {
		for _, v := range n.Inputs() {
			if v != nil && v.Producer() != nil && v.Graph() == g && !seen[v.Producer()] {
				return g.Sort()
			}
		}
		seen[n] = true
	}
	return nil
}
