package opset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func raise(t *testing.T, m *ir.Model, to int64) error {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	return Raise(context.Background(), e, m, to)
}

// model is the case's old model: one node, its inputs and constants.
func (c ruleCase) model() *ir.Model {
	m := ir.NewModel()
	m.IRVersion = 8
	m.Opsets = []ir.Opset{{Version: c.from}}
	m.Graph.Name = "g"
	var in []*ir.Value
	for _, o := range c.in {
		in = append(in, o.value(m.Graph))
	}
	n := m.Graph.NewNode(ir.OpID{Type: c.op}, in, c.attrs...)
	outputs := c.outputs
	if outputs == nil {
		outputs = []string{"y"}
	}
	var vs []*ir.Value
	for _, name := range slices.Concat(outputs, c.unused) {
		vs = append(vs, m.Graph.NewValue(name))
	}
	n.SetOutputs(vs...)
	m.Graph.Append(n)
	for _, v := range vs[:len(outputs)] {
		if shape, ok := Shape(v); ok && Elem(v) != ir.Undefined {
			v.Type = &ir.Type{Elem: Elem(v), Shape: shape}
		}
		m.Graph.AddOutput(v)
	}
	return m
}

// value is an input of g or a constant.
func (o operandCase) value(g *ir.Graph) *ir.Value {
	if o.elem == ir.Undefined {
		return nil
	}
	if o.data != nil || slices.Contains(o.shape, 0) {
		return g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: o.elem, Shape: o.shape}, Source: encode(o.elem, o.data)})
	}
	v := g.NewValue("x")
	v.Type = &ir.Type{Elem: o.elem, Shape: dims(o.shape)}
	g.Inputs = append(g.Inputs, v)
	return v
}

func encode(t ir.DType, data []float64) ir.Mem {
	b := ir.Mem{}
	for _, d := range data {
		if t == ir.Int64 {
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(d)))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(d)))
		}
	}
	return b
}

// strip takes the types from the bare inputs; the function it returns puts them back.
func (c ruleCase) strip(m *ir.Model) (restore func()) {
	types := map[*ir.Value]*ir.Type{}
	i := 0
	for _, o := range c.in {
		if o.elem == ir.Undefined || o.data != nil || slices.Contains(o.shape, 0) {
			continue
		}
		v := m.Graph.Inputs[i]
		i++
		if o.bare {
			types[v], v.Type = v.Type, nil
		}
	}
	return func() {
		for v, t := range types {
			v.Type = t
		}
	}
}

// text renders a graph, its constants in place of their names.
func text(g *ir.Graph) string {
	var lines []string
	for n := range g.Nodes() {
		var in, out []string
		for _, v := range n.Inputs() {
			in = append(in, operandText(v))
		}
		for _, v := range n.Outputs {
			out = append(out, v.Name)
		}
		lines = append(lines, strings.Join(out, ", ")+" = "+n.Op.String()+attrText(n)+"("+strings.Join(in, ", ")+")")
	}
	return strings.Join(lines, "\n")
}

func operandText(v *ir.Value) string {
	switch {
	case v == nil:
		return ""
	case v.Const == nil:
		return v.Name
	}
	b := []byte(v.Const.Source.(ir.Mem))
	var is []int64
	for ; v.Const.DType == ir.Int64 && len(b) > 0; b = b[8:] {
		is = append(is, int64(binary.LittleEndian.Uint64(b)))
	}
	if v.Const.DType == ir.Int64 {
		return fmt.Sprint(is)
	}
	var fs []string
	for ; len(b) > 0; b = b[4:] {
		fs = append(fs, fmt.Sprint(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return "{" + strings.Join(fs, " ") + "}"
}

func attrText(n *ir.Node) string {
	var attrs []string
	for _, a := range n.Attrs {
		attrs = append(attrs, a.Name+"="+valueText(a))
	}
	if attrs == nil {
		return ""
	}
	return "<" + strings.Join(attrs, " ") + ">"
}

func valueText(a *ir.Attr) string {
	switch a.Type {
	case ir.AttrInt:
		return fmt.Sprint(a.I)
	case ir.AttrFloat:
		return fmt.Sprint(a.F)
	case ir.AttrString:
		return a.S
	case ir.AttrInts:
		return fmt.Sprint(a.Ints)
	case ir.AttrFloats:
		return fmt.Sprint(a.Floats)
	case ir.AttrGraph:
		return "{" + text(a.Graph) + "}"
	}
	return fmt.Sprintf("attribute type %d", a.Type)
}

func (c ruleCase) label() string { return fmt.Sprintf("%s to %d, %s", c.op, c.to, c.name) }

func TestRulesRewrite(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.label(), func(t *testing.T) {
			m := c.model()
			c.strip(m)
			before := text(m.Graph)
			err := raise(t, m, c.to)
			if c.refused != "" {
				wantRefusal(t, m, c, err, before)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Verify(); err != nil {
				t.Error(err)
			}
			if got := text(m.Graph); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
			if got := m.Opset(""); got != c.to {
				t.Errorf("opset %d, want %d", got, c.to)
			}
		})
	}
}

func wantRefusal(t *testing.T, m *ir.Model, c ruleCase, err error, before string) {
	t.Helper()
	want := &Unsupported{Node: m.Graph.Outputs[0].Producer().Label(), Op: c.op, From: c.from, To: c.to, Reason: c.refused}
	var got *Unsupported
	if !errors.As(err, &got) || *got != *want {
		t.Errorf("got %v, want %v", err, want)
	}
	if after := text(m.Graph); after != before || m.Opset("") != c.from {
		t.Errorf("a refused model changed:\n%s\nwas:\n%s", after, before)
	}
}

// Every rule must have a case for each of its operators, that rewrites or refuses.
func TestEveryRuleHasACase(t *testing.T) {
	tested := map[step]bool{}
	for _, c := range cases() {
		tested[step{c.op, c.to}] = true
	}
	for _, r := range rules {
		for _, op := range r.ops {
			if r.do != nil && !tested[step{op, r.to}] {
				t.Errorf("the rule of %s to %d has no case", op, r.to)
			}
		}
	}
}

// A version whose schema breaks with the one before must not pass unseen, and a rule
// for a version that does not exist never runs.
func TestRulesCoverTheHistory(t *testing.T) {
	ruled := map[step]bool{}
	for _, r := range rules {
		if (r.do == nil) == (r.why == "") {
			t.Errorf("the rule of %v to %d needs a rewrite or a reason for none, and not both", r.ops, r.to)
		}
		for _, op := range r.ops {
			ruled[step{op, r.to}] = true
			if o, ok := lookup(op); !ok || !slices.Contains(o.since[1:], r.to) {
				t.Errorf("the rule of %s to %d has no version", op, r.to)
			}
		}
	}
	for _, o := range operators {
		for _, v := range o.breaks {
			if !ruled[step{o.name, v}] {
				t.Errorf("%s breaks at %d and has no rule", o.name, v)
			}
		}
	}
}
