package ir

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
)

// Text writes m in ONNX's text syntax, for people and for tests that compare models
// as text; onnx.parser reads it. It reads the payloads of tensors of up to 8
// elements through e. Equal models give equal text.
//
// Constant nodes were lifted to initializers when the model was read and are written
// as those; functions have none, so there they are Constant nodes at the start. What
// the syntax has no form for:
//   - the data of a larger tensor, or of strings: external data of the one key
//     "elided", as in float[512,784] w = ["elided" : "1605632 bytes"]
//   - an attribute value that the ir does not hold: the reference @elided
//   - values of types below 8 bits and of 16-bit and 8-bit floats are written as the
//     items of int32_data, which is how the parser takes them: bits as an unsigned
//     number, 4- and 2-bit types packed into bytes
//   - doc strings, and types other than tensors, are left out
func (m *Model) Text(ctx context.Context, e *Eval, w io.Writer) error {
	p := &printer{ctx: ctx, eval: e, w: bufio.NewWriter(w)}
	p.model(m)
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// A printer writes text until its first error.
type printer struct {
	ctx    context.Context
	eval   *Eval
	w      *bufio.Writer
	err    error
	indent string
}

func (p *printer) put(parts ...string) {
	for _, s := range parts {
		if p.err == nil {
			_, p.err = p.w.WriteString(s)
		}
	}
}

// line starts a new line.
func (p *printer) line(parts ...string) {
	p.put("\n", p.indent)
	p.put(parts...)
}

const step = "   "

// block puts what do writes one step further in.
func (p *printer) block(do func()) {
	p.indent += step
	do()
	p.indent = p.indent[len(step):]
}

// list calls do for i < n with commas between.
func (p *printer) list(open, end string, n int, do func(i int)) {
	p.put(open)
	for i := range n {
		if i > 0 {
			p.put(", ")
		}
		do(i)
	}
	p.put(end)
}

func (p *printer) model(m *Model) {
	p.put("<\n   ir_version: ", strconv.FormatInt(m.IRVersion, 10), ",\n   ")
	p.opsets(m.Opsets)
	if len(m.Meta) > 0 {
		p.put(",\n   metadata_props: ")
		p.list("[", "]", len(m.Meta), func(i int) { p.put(quoted(m.Meta[i].Key), " : ", quoted(m.Meta[i].Value)) })
	}
	p.put("\n>\n")
	p.graph(m.Graph)
	p.put("\n")
	for _, f := range m.Functions {
		p.function(f)
	}
}

func (p *printer) opsets(os []Opset) {
	p.put("opset_import: ")
	p.list("[", "]", len(os), func(i int) { p.put(quoted(os[i].Domain), " : ", strconv.FormatInt(os[i].Version, 10)) })
}

func (p *printer) graph(g *Graph) {
	p.put(identifier(g.Name), " ")
	p.list("(", ")", len(g.Inputs), func(i int) {
		if v := g.Inputs[i]; v.Const != nil {
			p.initializer(v)
		} else {
			p.value(v)
		}
	})
	p.put(" => ")
	p.list("(", ")", len(g.Outputs), func(i int) { p.value(g.Outputs[i]) })
	p.insides(g)
	p.body(g)
}

// insides writes the initializers that are no inputs, and the types of what nodes make.
func (p *printer) insides(g *Graph) {
	var write []func()
	inputs, outputs := valueSet(g.Inputs), valueSet(g.Outputs)
	for _, v := range g.Consts() {
		if !inputs[v] {
			write = append(write, func() { p.initializer(v) })
		}
	}
	for n := range g.Nodes() {
		for _, v := range n.Outputs {
			if v != nil && !outputs[v] && v.Type.String() != "" {
				write = append(write, func() { p.value(v) })
			}
		}
	}
	if len(write) == 0 {
		return
	}
	p.line("<")
	p.block(func() {
		for i, do := range write {
			if i > 0 {
				p.put(",")
			}
			p.line()
			do()
		}
	})
	p.line(">")
}

func valueSet(vs []*Value) map[*Value]bool {
	set := make(map[*Value]bool, len(vs))
	for _, v := range vs {
		set[v] = true
	}
	return set
}

func (p *printer) body(g *Graph) {
	p.line("{")
	p.block(func() {
		if g.function != nil && g.Outer == nil {
			for _, v := range g.Consts() {
				p.line(identifier(v.Name), " = Constant <value = ")
				p.tensor(v.Const, v.Const.Name)
				p.put("> ()")
			}
		}
		for n := range g.Nodes() {
			p.line()
			p.node(n)
		}
	})
	p.line("}")
}

func (p *printer) function(f *Function) {
	p.put("<\n   domain: ", quoted(f.ID.Domain), ",\n   ")
	if f.ID.Overload != "" {
		p.put("overload: ", quoted(f.ID.Overload), ",\n   ")
	}
	p.opsets(f.Opsets)
	p.put("\n>\n", identifier(f.ID.Type), " ")
	if as := f.Body.references(); len(as) > 0 {
		p.list("<", "> ", len(as), func(i int) { p.put(word(as[i])) })
	}
	p.list("(", ")", len(f.Body.Inputs), func(i int) { p.value(f.Body.Inputs[i]) })
	p.put(" => ")
	p.list("(", ")", len(f.Body.Outputs), func(i int) { p.value(f.Body.Outputs[i]) })
	p.body(f.Body)
	p.put("\n")
}

// references are the function attributes that g's nodes refer to, in their order.
func (g *Graph) references() []string {
	var names []string
	seen := map[string]bool{}
	g.all(func(g *Graph) bool {
		for n := range g.Nodes() {
			for _, a := range n.Attrs {
				if a.Ref != "" && !seen[a.Ref] {
					seen[a.Ref] = true
					names = append(names, a.Ref)
				}
			}
		}
		return true
	})
	return names
}

func (p *printer) node(n *Node) {
	if n.Name != "" {
		p.put("[", identifier(n.Name), "] ")
	}
	p.names("", "", n.Outputs)
	p.put(" = ", n.Op.String())
	late := false // a subgraph comes after the inputs, where it can be read
	for range n.Subgraphs() {
		late = true
	}
	if !late {
		p.attrs(n)
	}
	p.names(" (", ")", n.inputs)
	if late {
		p.attrs(n)
	}
}

func (p *printer) names(open, end string, vs []*Value) {
	p.list(open, end, len(vs), func(i int) {
		if vs[i] == nil {
			p.put(`""`)
			return
		}
		p.put(identifier(vs[i].Name))
	})
}

// value writes v's type, where it is known, and name.
func (p *printer) value(v *Value) {
	if t := v.Type.String(); t != "" {
		p.put(t, " ")
	}
	p.put(identifier(v.Name))
}

// String is t in ONNX's text syntax, such as float[N,10]; empty if it is not set.
func (t *Type) String() string {
	if t == nil || !t.Elem.Known() {
		return ""
	}
	if t.Shape == nil {
		return t.Elem.String() + "[]"
	}
	s := t.Elem.String()
	for i, d := range t.Shape {
		s += map[bool]string{true: "[", false: ","}[i == 0] + d.text()
	}
	if len(t.Shape) > 0 {
		s += "]"
	}
	return s
}

func (d Dim) text() string {
	switch {
	case d.Param != "":
		return identifier(d.Param)
	case d.N < 0:
		return "?"
	}
	return fmt.Sprint(d.N)
}
