package opset

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A Violation is a rule of ONNX that a model breaks, so that runtimes refuse it.
type Violation struct {
	// Rule names operators, attributes and types, but neither nodes nor opsets: a model and the model that it was made
	// from break the same rule.
	Rule string
	// Place names the node or graph.
	Place string
	// Edge is set where the element types of one value, or of values of one type, differ.
	Edge bool
}

func (v Violation) String() string { return v.Place + ": " + v.Rule }

// Check returns the rules that m breaks: each operator exists in the opset of its domain, with the attributes of that
// version in their kinds and as many inputs and outputs as it takes; the element types of all edges agree, into and out
// of subgraphs and functions too; names of values are unique in their graph. Operators of other domains than ONNX's and
// ONNX Runtime's, and of opsets that are not known, may be anything. It reads no payload.
func Check(m *ir.Model) []Violation { return check(m, false) }

func check(m *ir.Model, edges bool) []Violation {
	c := &checker{edges: edges, calls: map[string][]types{}}
	if len(m.Functions) > 0 {
		c.checked = map[*ir.Node]bool{}
	}
	f := frame{c, map[*ir.Value]types{}}
	f.graph(m.Graph)
	for _, fn := range m.Functions {
		frame{c, map[*ir.Value]types{}}.graph(fn.Body) // of any types, as it may not be called
	}
	return c.found
}

// CheckTypes returns the first edge of m whose element types differ.
func CheckTypes(m *ir.Model) (Violation, bool) {
	if found := check(m, true); len(found) > 0 {
		return found[0], true
	}
	return Violation{}, false
}

type checker struct {
	found   []Violation
	edges   bool               // only the first violation of an edge is found: each node may have others
	checked map[*ir.Node]bool  // nodes whose operator, attributes and numbers of values were checked; nil if each is visited once
	calls   map[string][]types // results of functions by their arguments
}

// A frame is the main graph or one call of a function: the element types of its values that the model does not declare.
type frame struct {
	*checker
	types map[*ir.Value]types
}

// leavesOut reports whether a violation is not one that is looked for.
func (c *checker) leavesOut(edge bool) bool { return c.edges && (!edge || len(c.found) > 0) }

func (c *checker) report(place string, edge bool, format string, args ...any) {
	if c.leavesOut(edge) {
		return
	}
	c.found = append(c.found, Violation{fmt.Sprintf(format, args...), place, edge})
}

// at reports a violation of n.
func (c *checker) at(n *ir.Node, edge bool, format string, args ...any) {
	if c.leavesOut(edge) {
		return // before its text is made
	}
	c.report(n.Place(), edge, operator.Name(n.Op)+": "+format, args...)
}

// Version is the opset of the domain of n's operator. Models use ONNX Runtime's operators without importing their
// domain.
func Version(n *ir.Node) int64 {
	v := n.Graph().Opset(n.Op.Domain)
	if v == 0 && n.Op.Domain == Contributed {
		return 1
	}
	return v
}

// Contributed is the domain of ONNX Runtime's operators.
const Contributed = "com.microsoft"

func (f frame) graph(g *ir.Graph) {
	f.names(g)
	nodes, err := g.Order()
	if err != nil {
		return // Verify's
	}
	for _, n := range nodes {
		f.node(n)
	}
}

// names checks that no two values of g have one name.
func (f frame) names(g *ir.Graph) {
	taken := map[string]*ir.Value{}
	add := func(v *ir.Value) {
		if v == nil || v.Name == "" {
			return
		}
		if w := taken[v.Name]; w != nil && w != v {
			f.report("graph "+g.Name, false, "two values are named %q", v.Name)
		}
		taken[v.Name] = v
	}
	for _, v := range slices.Concat(g.Inputs, g.Consts()) {
		add(v)
	}
	for n := range g.Nodes() {
		for _, v := range n.Outputs {
			add(v)
		}
	}
}

func (f frame) node(n *ir.Node) {
	if fn := n.Callee(); fn != nil {
		f.call(n, fn)
		return
	}
	s := f.signature(n)
	// The body of a function is walked once for each list of argument types: what does not depend on types is
	// reported once.
	first := !f.checked[n]
	if f.checked != nil {
		f.checked[n] = true
	}
	if s != nil && first {
		f.attributes(n, s)
		f.count(n, "inputs", s.in, n.Inputs())
		f.count(n, "outputs", s.out, n.Outputs)
	}
	switch {
	case n.Op.Is("If"):
		f.branches(n)
	case n.Op.Is("Loop"):
		f.iterated(n, 0, loopInputs, loopOutputs, len(n.Inputs())-loopInputs)
	case n.Op.Is("Scan"):
		skip := 0
		if Version(n) == 8 {
			skip = 1 // sequence_lens
		}
		f.iterated(n, skip, 0, 0, len(n.Inputs())-skip-int(n.Int("num_scan_inputs", 0)))
	default:
		for g := range n.Subgraphs() {
			f.graph(g)
		}
	}
	if s != nil {
		f.edges(n, s)
	}
}

// signature is that of n; nil if it is not known.
func (f frame) signature(n *ir.Node) *signature {
	version, standard := Version(n), ir.DefaultDomain(n.Op.Domain)
	if n.Op.Domain == operator.Newest || standard && (version < 1 || version > Newest) {
		return nil
	}
	s, known := signatureOf(n.Op, version)
	switch {
	case f.checked[n]:
	case s == nil && (known || standard):
		f.at(n, false, "no operator of the opset that the model imports")
	case s != nil && s.deprecated:
		f.at(n, false, "not an operator any more in the opset that the model imports")
	case s != nil && n.Graph().Opset(n.Op.Domain) == 0:
		f.at(n, false, "the model does not import the domain")
	}
	if s == nil || s.deprecated {
		return nil
	}
	return s
}

func (f frame) attributes(n *ir.Node, s *signature) {
	for _, a := range n.Attrs {
		switch have, ok := s.attribute(a.Name); {
		case !ok:
			f.at(n, false, "no attribute %s in the opset that the model imports", a.Name)
		case have.kind != a.Type && a.Type != 0:
			f.at(n, false, "attribute %s is of kind %d, not %d", a.Name, a.Type, have.kind)
		}
	}
	for _, a := range s.attrs {
		if a.required && n.Attr(a.name) == nil {
			f.at(n, false, "attribute %s is missing", a.name)
		}
	}
}

// count checks the number of n's inputs or outputs, and that no required input is absent.
func (f frame) count(n *ir.Node, what string, ps Params, vs []*ir.Value) {
	switch least, most := ps.count(); {
	case len(vs) < least:
		f.at(n, false, "fewer than %d %s", least, what)
	case most >= 0 && len(vs) > most:
		f.at(n, false, "more than %d %s in the opset that the model imports", most, what)
	}
	if what != "inputs" {
		return
	}
	for i, v := range vs {
		if p, ok := ps.At(i); ok && v == nil && !p.optional && !p.many {
			f.at(n, false, "input %d is absent", i)
		}
	}
}

// declared is the type of v that the model states, none in functions, whose values may have other types in each call.
func declared(v *ir.Value) types {
	switch t := v.Initializer(); {
	case t != nil:
		return typesOf(t.DType)
	case v.Type != nil && v.Type.Elem != ir.Undefined && v.Graph().Function() == nil:
		return typesOf(v.Type.Elem)
	}
	return 0
}

// of is the type of v; 0 if it is not known.
func (f frame) of(v *ir.Value) types {
	if v == nil || v.Ambiguous {
		return 0
	}
	if t := declared(v); t != 0 {
		return t
	}
	return f.types[v]
}

// set is the type that v has by its producer.
func (f frame) set(n *ir.Node, v *ir.Value, t types) {
	if v == nil || v.Ambiguous || t == 0 {
		return
	}
	if d := declared(v); d != 0 && d != t {
		f.at(n, true, "a value is %s, and declared as %s", t, d)
		return
	}
	f.types[v] = t
}

// edges checks the types of n's inputs, and sets those of its outputs.
func (f frame) edges(n *ir.Node, s *signature) {
	bound := map[string]types{}
	for i, v := range n.Inputs() {
		p, ok := s.in.At(i)
		t := f.of(v)
		if !ok || t == 0 {
			continue
		}
		if p.types&t == 0 {
			f.at(n, false, "input %d is %s in the opset that the model imports", i, t)
			continue
		}
		// Arguments of one type variable have one type, except those of a heterogeneous variadic parameter.
		if b := bound[p.Var]; p.Var != "" && !p.Mixed {
			if b != 0 && b != t {
				f.at(n, true, "inputs of type %s are %s and %s", p.Var, b, t)
			}
			bound[p.Var] = t
		}
	}
	if operator.Of(n).ControlFlow {
		return // set by the subgraphs
	}
	for i, v := range n.Outputs {
		p, ok := s.out.At(i)
		if !ok || v == nil {
			continue
		}
		t := f.output(n, i, p, bound)
		if t == 0 {
			t = f.of(v)
		}
		if t != 0 && p.types&t == 0 {
			f.at(n, false, "output %d is %s in the opset that the model imports", i, t)
			continue
		}
		if p.Var != "" && !p.Mixed && t != 0 {
			bound[p.Var] = t
		}
		f.set(n, v, t)
	}
}

// output is the type of n's output i, which is p, where the types of inputs or an attribute determine it.
func (f frame) output(n *ir.Node, i int, p Param, bound map[string]types) types {
	if t, ok := f.stated(n); ok && i == 0 {
		return t
	}
	if p.Var != "" && !p.Mixed && bound[p.Var] != 0 {
		return bound[p.Var]
	}
	if bits.OnesCount64(uint64(p.types)) == 1 {
		return p.types
	}
	return 0
}

// stated is the type of n's first output that an attribute sets, or its absence; false if none does.
func (f frame) stated(n *ir.Node) (types, bool) {
	facts := operator.Of(n)
	if facts.ElemAttr == "" || n.Op.Domain == Contributed {
		return 0, false
	}
	switch a := n.Attr(facts.ElemAttr); {
	case a == nil:
		return f.byDefault(n)
	case a.Ref != "" || a.Elided:
		return 0, true
	case a.Tensor != nil:
		return typesOf(a.Tensor.DType), true
	case a.Type == ir.AttrString:
		return orNone(dtypeNamed(a.S)), true
	case a.I > 0 && ir.DType(a.I).Known():
		return typesOf(ir.DType(a.I)), true
	case a.I == 0:
		return f.byDefault(n)
	}
	return 0, true
}

func orNone(dt ir.DType) types {
	if dt == ir.Undefined {
		return 0
	}
	return typesOf(dt)
}

// byDefault is the type of n's first output without its attribute.
func (f frame) byDefault(n *ir.Node) (types, bool) {
	switch n.Op.Type {
	case "Cast":
		return 0, true
	case "DequantizeLinear":
		return f.of(n.Input(1)), true
	case "QuantizeLinear":
		if n.Input(2) == nil {
			return typesOf(ir.Uint8), true
		}
		return f.of(n.Input(2)), true
	case "Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike":
		return f.of(n.Input(0)), true
	case "Multinomial":
		return typesOf(ir.Int32), true
	}
	return typesOf(ir.Float), true
}

// branches checks that the outputs of an If have the types of those of both subgraphs.
func (f frame) branches(n *ir.Node) {
	made := make([]types, len(n.Outputs))
	for g := range n.Subgraphs() {
		f.graph(g)
		if len(g.Outputs) != len(n.Outputs) {
			f.at(n, false, "a branch has another number of outputs")
		}
		for i, v := range g.Outputs {
			t := f.of(v)
			if i >= len(made) || t == 0 {
				continue
			}
			if made[i] != 0 && made[i] != t {
				f.at(n, true, "the branches return %s and %s", made[i], t)
			}
			made[i] = t
		}
	}
	for i, v := range n.Outputs {
		f.set(n, v, made[i])
	}
}

// iterated checks the body of Loop or Scan, which has, after a number of inputs and outputs of its own, the inputs of n
// after those to skip and the outputs of n; the first of both are states.
func (f frame) iterated(n *ir.Node, skip, ownInputs, ownOutputs, states int) {
	var body *ir.Graph
	for g := range n.Subgraphs() {
		body = g
	}
	if body == nil {
		return
	}
	passed := slices.Clone(n.Inputs())
	if len(passed) > skip {
		passed = passed[skip:]
	}
	if len(body.Inputs) != len(passed) {
		f.at(n, false, "the body has another number of inputs")
	}
	for i, v := range body.Inputs {
		if i >= ownInputs && i < len(passed) {
			// Before the body is walked, whose nodes derive their types from these.
			f.set(n, v, f.of(passed[i]))
		}
	}
	f.graph(body)
	if len(body.Outputs) != len(n.Outputs)+ownOutputs {
		f.at(n, false, "the body has another number of outputs")
	}
	for i, v := range n.Outputs {
		if ownOutputs+i >= len(body.Outputs) {
			return
		}
		t := f.of(body.Outputs[ownOutputs+i])
		if i < states && ownInputs+i < len(passed) {
			if first := f.of(passed[ownInputs+i]); t != 0 && first != 0 && t != first {
				f.at(n, true, "a state is %s at first, and %s after an iteration", first, t)
			}
		}
		f.set(n, v, t)
	}
}

// call checks the body of fn for the types of n's inputs, once for equal ones.
func (f frame) call(n *ir.Node, fn *ir.Function) {
	if !f.checked[n] && len(n.Inputs()) > len(fn.Body.Inputs) {
		f.at(n, false, "more inputs than the function has")
	}
	if f.checked != nil {
		f.checked[n] = true
	}
	// By types: a function that is called from many layers with the same ones is walked once.
	key := fmt.Sprintf("%p", fn)
	inner := frame{f.checker, map[*ir.Value]types{}}
	for i, v := range fn.Body.Inputs {
		t := f.of(n.Input(i))
		inner.types[v] = t
		key += fmt.Sprintf(" %x", uint64(t))
	}
	results, again := f.calls[key]
	if !again {
		f.calls[key] = nil // ends recursion
		inner.graph(fn.Body)
		for _, v := range fn.Body.Outputs {
			results = append(results, inner.of(v))
		}
		f.calls[key] = results
	}
	for i, v := range n.Outputs {
		if i < len(results) {
			f.set(n, v, results[i])
		}
	}
}

// String lists the types, as in ONNX's text syntax.
func (t types) String() string {
	var names []string
	for dt := ir.Undefined; dt.Known() || dt == ir.Undefined; dt++ {
		if t&typesOf(dt) != 0 {
			names = append(names, dt.String())
		}
	}
	if t&anyOther != 0 {
		names = append(names, "no tensor")
	}
	return strings.Join(names, " or ")
}
