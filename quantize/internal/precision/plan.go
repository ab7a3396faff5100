package precision

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// Options select the values that become narrow.
type Options struct {
	To     ir.DType // Float16 or BFloat16
	KeepIO bool     // inputs and outputs of the model stay float32

	// KeepFloat returns an additional reason why a node is computed in float32; may be nil.
	KeepFloat func(n *ir.Node) pass.Reason
	// OutOfRange returns the reason why a value, its producer and its consumers are float32; may be nil.
	OutOfRange func(v *ir.Value) pass.Reason
	// Limit returns the magnitude to which a float32 value is clamped before it becomes narrow, as it may exceed the
	// range of the type; 0 for none. May be nil.
	Limit func(v *ir.Value) float32
}

// A Plan is the set of narrow values and of nodes that compute in the narrow type.
type Plan struct {
	Options
	// Reasons maps nodes that are computed in float32 to the reason, from this package or the options. Its Node is
	// empty.
	Reasons map[*ir.Node]pass.Reason

	kinds             *kinds
	narrow            map[*ir.Node]bool  // nodes that compute in the narrow type
	low               map[*ir.Value]bool // narrow values, except constants
	exact             map[*ir.Value]bool // values computed from integers only
	dequantizedValues map[*ir.Value]bool // dequantized values
	narrowFunctions   map[*ir.Function]bool
	bounds            map[bound]*ir.Value // constants of Clip
}

// New decides for every node of m. It does not change m.
func New(m *ir.Model, o Options) *Plan {
	if o.OutOfRange == nil {
		o.OutOfRange = func(*ir.Value) (none pass.Reason) { return }
	}
	if o.KeepFloat == nil {
		o.KeepFloat = func(*ir.Node) (none pass.Reason) { return }
	}
	if o.Limit == nil {
		o.Limit = func(*ir.Value) float32 { return 0 }
	}
	p := &Plan{
		Options: o, Reasons: map[*ir.Node]pass.Reason{},
		kinds:  &kinds{calls: map[*ir.Function][]*ir.Node{}, known: map[*ir.Value]kind{}},
		narrow: map[*ir.Node]bool{}, low: map[*ir.Value]bool{}, exact: map[*ir.Value]bool{},
		dequantizedValues: map[*ir.Value]bool{},
		narrowFunctions:   map[*ir.Function]bool{}, bounds: map[bound]*ir.Value{},
	}
	// Functions first: whether a body computes in the narrow type depends on all its calls, and nodes in it are
	// decided as a whole.
	p.functions(m)
	for _, v := range m.Graph.Inputs {
		p.low[v] = !o.KeepIO && p.is(v) && v.Initializer() == nil && p.OutOfRange(v).None()
	}
	p.graph(m.Graph)
	for _, f := range m.Functions {
		for _, v := range f.Body.Inputs {
			p.low[v] = p.narrowFunctions[f] && p.is(v)
		}
		p.graph(f.Body)
	}
	return p
}

// is reports whether v is a float32 tensor.
func (p *Plan) is(v *ir.Value) bool { return p.kinds.of(v) == single }

// Floats reports whether n has float32 inputs or outputs.
func (p *Plan) Floats(n *ir.Node) bool {
	return slices.ContainsFunc(n.Inputs(), p.is) || slices.ContainsFunc(n.Outputs, p.is)
}

// graph decides for g's nodes in topological order, subgraphs before the node that owns them. A cyclic graph
// is unchanged.
func (p *Plan) graph(g *ir.Graph) {
	// Types flow from producers to consumers.
	nodes, err := g.Order()
	if err != nil {
		return
	}
	for _, n := range nodes {
		// Arguments, subgraphs, and then the node, whose outputs have the types of theirs.
		p.enterSubgraphs(n)
		for s := range n.Subgraphs() {
			p.graph(s)
		}
		p.node(n)
	}
}

// enterSubgraphs gives the inputs of n's subgraphs the state of the arguments.
func (p *Plan) enterSubgraphs(n *ir.Node) {
	for g := range n.Subgraphs() {
		for i, v := range g.Inputs {
			if j := ownerInput(n, i); j >= 0 && p.is(v) {
				p.low[v] = p.low[n.Input(j)] && p.rangeReason(n).None()
			}
		}
	}
}

func (p *Plan) node(n *ir.Node) {
	if controls(n) {
		p.leaveSubgraphs(n)
		return
	}
	reason := p.float32Reason(n)
	if !reason.None() {
		// Also of nodes without floats: the ledger leaves these out.
		p.Reasons[n] = reason
	}
	switch {
	case n.Op.Is("Cast"):
		p.cast(n, !reason.None())
		return
	case reason.None() && p.typed(n):
		p.narrow[n] = p.narrows(n)
	}
	if f := n.Callee(); f != nil {
		p.results(n, p.narrowFunctions[f])
		return
	}
	p.setOutputTypes(n)
}

// float32Reason is the reason why n is computed in float32 for any inputs.
func (p *Plan) float32Reason(n *ir.Node) pass.Reason {
	f := n.Callee()
	_, _, known := signature(n)
	switch {
	case f == nil && !known:
		return pass.Reason{Code: pass.FloatOperator}
	case f == nil && operator.Of(n).HoldsQuantized():
		return pass.Reason{Code: pass.FloatQuantized}
	case !p.KeepFloat(n).None():
		return p.KeepFloat(n)
	case !p.rangeReason(n).None():
		return p.rangeReason(n)
	case !p.inFunction(n).None():
		return p.inFunction(n)
	case f != nil && !p.narrowFunctions[f]:
		return pass.Reason{Code: pass.FloatFunction, Detail: f.ID.String()}
	case f != nil:
		return pass.Reason{}
	case !guard(n).None():
		return guard(n)
	}
	for _, v := range n.Inputs() {
		if p.dequantizedValues[v] {
			return pass.Reason{Code: pass.FloatQuantized}
		}
	}
	return pass.Reason{}
}

// rangeReason is the reason of an input or output of n, or of a node that contains n.
func (p *Plan) rangeReason(n *ir.Node) pass.Reason {
	for ; n != nil; n = n.Graph().Owner {
		for _, v := range slices.Concat(n.Inputs(), n.Outputs) {
			if v != nil && !p.OutOfRange(v).None() {
				return p.OutOfRange(v)
			}
		}
	}
	return pass.Reason{}
}

// typed reports whether each type variable of n with a float32 argument has only float32 arguments and allows the
// narrow type.
func (p *Plan) typed(n *ir.Node) bool {
	if n.Callee() != nil {
		return true
	}
	in, out, _ := signature(n)
	vars := map[string]bool{}
	each(n, in, out, func(v *ir.Value, q opset.Param) {
		vars[q.Var] = vars[q.Var] || q.Var != "" && p.is(v)
	})
	fits := true
	each(n, in, out, func(v *ir.Value, q opset.Param) {
		fits = fits && q.Tensor() && (!vars[q.Var] || p.is(v) || p.kinds.of(v) == unknown && p.learn(v))
	})
	return fits
}

// learn sets the unknown kind of v to float32, the kind of another argument of its type variable.
func (p *Plan) learn(v *ir.Value) bool {
	if v.Ambiguous {
		return false
	}
	// From here on it is one for its other consumers, too.
	p.kinds.known[v] = single
	return true
}

// each calls do for the inputs and outputs of n that have a formal parameter.
func each(n *ir.Node, in, out opset.Params, do func(*ir.Value, opset.Param)) {
	for i, v := range n.Inputs() {
		if q, ok := in.At(i); ok && v != nil {
			do(v, q)
		}
	}
	for i, v := range n.Outputs {
		if q, ok := out.At(i); ok && v != nil {
			do(v, q)
		}
	}
}

// narrows reports whether n, which may be narrow, is narrow: it is a product, one of its inputs is narrow, or all
// inputs are constants.
func (p *Plan) narrows(n *ir.Node) bool {
	if n.Callee() != nil {
		return true
	}
	in, _, _ := signature(n)
	floats, constants, exact, size := 0, 0, 0, int64(0)
	for i, v := range n.Inputs() {
		q, ok := in.At(i)
		switch {
		case !ok || v == nil || !p.is(v) || !q.Takes(p.To):
		case v.Const != nil:
			constants++
			size = max(size, v.Const.Elems())
		case p.low[v]:
			return true
		case p.exact[v]:
			floats, exact = floats+1, exact+1
		default:
			floats++
		}
	}
	// Products are worth a Cast of their inputs; other nodes only follow narrow ones. A product of exact integers, such
	// as positions, with a small constant is not: it stays exact.
	if operator.Of(n).Precision == operator.LowPrecision {
		return floats == 0 || exact < floats || size > smallFactor
	}
	return floats == 0 && constants > 0
}

// setOutputTypes sets the types of n's outputs.
func (p *Plan) setOutputTypes(n *ir.Node) {
	in, out, _ := signature(n)
	for i, v := range n.Outputs {
		q, ok := out.At(i)
		if !ok || v == nil || !p.is(v) {
			continue
		}
		// Only outputs that have the type variable of a narrow input: others have a type of their own.
		p.low[v] = p.narrow[n] && q.Takes(p.To) && p.follows(n, in, q)
		p.exact[v] = !p.low[v] && p.exactInputs(n)
		p.dequantizedValues[v] = n.Op.Is("DequantizeLinear") || operator.Of(n).Move.Keeps() && p.dequantizedValues[n.Input(0)]
	}
}

// follows reports whether an output of type q has the type variable of a narrow input.
func (p *Plan) follows(n *ir.Node, in opset.Params, q opset.Param) bool {
	for i, v := range n.Inputs() {
		if r, ok := in.At(i); ok && v != nil && r.Var == q.Var && p.is(v) {
			return true
		}
	}
	return false
}

func (p *Plan) exactInputs(n *ir.Node) bool {
	found := false
	for _, v := range n.Inputs() {
		switch {
		case v == nil || v.Const != nil || !p.is(v):
		case !p.exact[v]:
			return false
		default:
			found = true
		}
	}
	return found
}

// results makes all or none of n's float32 outputs narrow.
func (p *Plan) results(n *ir.Node, low bool) {
	for _, v := range n.Outputs {
		if v != nil && p.is(v) {
			p.low[v] = low
		}
	}
}

// cast decides the output type of a Cast to float32: float32 for integers, else the type of its input.
func (p *Plan) cast(n *ir.Node, stays bool) {
	x, y := n.Input(0), n.Outputs[0]
	// Of a Cast to another type nothing is decided.
	if !p.is(y) {
		return
	}
	switch p.kinds.of(x) {
	case single:
		p.low[y], p.exact[y] = p.low[x] && !stays, p.exact[x]
	case other:
		p.exact[y] = true
		if dt := opset.Elem(x); dt.IsFloat() {
			p.low[y], p.exact[y] = !stays, false
		}
	}
}

// leaveSubgraphs sets the output types of If, Loop and Scan to those of loop-carried values and subgraph outputs. Both
// branches of an If have one type: narrow if either is.
func (p *Plan) leaveSubgraphs(n *ir.Node) {
	for i, v := range n.Outputs {
		if v == nil || !p.is(v) {
			continue
		}
		if !n.Op.Is("If") {
			body, j := bodyOutput(n, i)
			// A state has one type before, in and after the body.
			if state := stateInput(n, body, i); state != nil {
				p.low[v] = p.low[state]
			} else if j < len(body.Outputs) {
				p.low[v] = p.low[body.Outputs[j]]
			}
			continue
		}
		for g := range n.Subgraphs() {
			p.low[v] = p.low[v] || i < len(g.Outputs) && p.low[g.Outputs[i]] && p.OutOfRange(v).None()
		}
	}
}

// functions finds the calls of m's functions and the functions that can be narrow as a whole: every call
// is in the main graph or in such a function, is not guarded, and has equal argument types.
func (p *Plan) functions(m *ir.Model) {
	for n := range m.Nodes() {
		if f := n.Callee(); f != nil {
			p.kinds.calls[f] = append(p.kinds.calls[f], n)
		}
	}
	for _, f := range m.Functions {
		p.narrowFunctions[f] = true
	}
	// A function that is not narrow takes those that it calls with it.
	for again := true; again; {
		again = false
		for _, f := range m.Functions {
			if p.narrowFunctions[f] && !p.agree(f) {
				p.narrowFunctions[f], again = false, true
			}
		}
	}
}

func (p *Plan) agree(f *ir.Function) bool {
	for _, n := range p.kinds.calls[f] {
		if in := n.Graph().Function(); !p.KeepFloat(n).None() || !p.rangeReason(n).None() ||
			in != nil && !p.narrowFunctions[in] {
			return false
		}
		for i, v := range f.Body.Inputs {
			if n.Input(i) != nil && (p.kinds.of(n.Input(i)) == unknown || p.kinds.of(n.Input(i)) != p.kinds.of(v)) {
				return false
			}
		}
	}
	return len(p.kinds.calls[f]) > 0
}

// inFunction is the reason for n in the body of a function that is computed in float32.
func (p *Plan) inFunction(n *ir.Node) pass.Reason {
	if f := n.Graph().Function(); f != nil && !p.narrowFunctions[f] {
		return pass.Reason{Code: pass.FloatFunction, Detail: f.ID.String()}
	}
	return pass.Reason{}
}
