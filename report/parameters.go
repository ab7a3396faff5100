package report

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// countParameters is the number of parameters of m: elements of its float constants of rank 1 or more, each constant
// once, quantized and sparse weights as the dense weights that operators compute with. Settings of operators, such as
// the factors of Resize, are no parameters, nor are scales, zero points, indices and other integers.
//
// It follows constants through the nodes that decode them: DequantizeLinear, Cast and Mul, nodes that unpack bytes,
// scatter or gather. What such nodes compute counts in place of the constants. Integers that operators read directly
// count where the operator has quantized weights.
func countParameters(ctx context.Context, m *ir.Model) (int64, error) {
	total, _, err := parameters(ctx, m)
	return total, err
}

// parameters are their number, and the constants with most of the bytes of each weight.
func parameters(ctx context.Context, m *ir.Model) (total int64, constants []*ir.Value, err error) {
	c := newParameterCounter(m)
	// Scales before weights: lookups in a tied table may gather what a product reads as its scales, which are no parameters.
	for n := range m.Nodes() {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		c.noteScales(n)
	}
	c.noteIndices()
	for n := range m.Nodes() {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		if _, constant := c.decoded[n]; !constant {
			c.operands(n)
		}
	}
	c.reach()
	for _, n := range c.elems {
		total += n
	}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			_, known := c.elems[v]
			if !known && pass.IsWeight(v.Const) && !c.scales[v] && c.isRead(v) {
				total += v.Const.Elems()
				known = true
			}
			if known {
				constants = append(constants, v)
			}
		}
	}
	return total, constants, nil
}

// A parameterCounter follows constants to the operators that read them.
type parameterCounter struct {
	decoded map[*ir.Node]decoded // nodes of constant inputs
	order   []*ir.Node           // of them, producers first
	used    map[*ir.Node]bool    // those whose output operators read as it is, or graphs return
	scales  map[*ir.Value]bool   // constants by which results of integer operators are multiplied
	elems   map[*ir.Value]int64  // of weights, by the constant with most of their bytes
	shapes  opset.Shapes
	lookups map[*ir.Value]*lookup  // in tables of quantized values
	factors map[*ir.Node][]*lookup // that a node multiplies
}

// newParameterCounter finds what the constant expressions of m decode.
func newParameterCounter(m *ir.Model) *parameterCounter {
	c := &parameterCounter{
		decoded: map[*ir.Node]decoded{},
		used:    map[*ir.Node]bool{},
		scales:  map[*ir.Value]bool{},
		elems:   map[*ir.Value]int64{},
		shapes:  opset.NewShapes(),
		lookups: map[*ir.Value]*lookup{},
		factors: map[*ir.Node][]*lookup{},
	}
	for n := range constantNodes(m, mayDecode) {
		c.decoded[n] = c.decode(n)
		c.order = append(c.order, n)
	}
	return c
}

// decoded is the output of a node of constant inputs.
type decoded struct {
	base    *ir.Value // the constant with most of its bytes; nil if there is none
	stored  ir.Spec   // of base
	elems   int64     // negative if unknown
	elem    ir.DType
	decodes bool // the elements are those of a quantized or sparse weight
}

// mayDecode reports whether the output of n, if all inputs are constant, is followed.
func mayDecode(n *ir.Node) bool {
	f := operator.Of(n)
	return mayFold(n) && !f.Random && !f.ControlFlow || holdsAny(f) || sparseTensor(n) != nil
}

// holdsAny reports whether the operator is DequantizeLinear, whose input is any quantized data.
func holdsAny(f *operator.Facts) bool { return f.Input(0).Role == operator.Data }

// of is the value v of a constant expression.
func (c *parameterCounter) of(v *ir.Value) decoded {
	switch {
	case v == nil:
		return decoded{elems: -1}
	case v.Const != nil:
		return decoded{base: v, stored: v.Const.Spec, elems: v.Const.Elems(), elem: v.Const.DType}
	}
	return c.decoded[v.Producer()]
}

// sparseTensor is the sparse tensor of a Constant node, which models have until they are written.
func sparseTensor(n *ir.Node) *ir.Sparse {
	if len(n.Inputs()) > 0 || len(n.Attrs) == 0 {
		return nil
	}
	return n.Attrs[0].Sparse
}

// decode is the output of n, whose inputs are known.
func (c *parameterCounter) decode(n *ir.Node) decoded {
	if t := sparseTensor(n); t != nil {
		dense := ir.Spec{DType: t.Values.DType, Shape: t.Shape}
		return decoded{base: n.Outputs[0], stored: dense, elems: dense.Elems(), elem: dense.DType, decodes: true}
	}
	first, facts := c.of(n.Input(0)), operator.Of(n)
	d := decoded{elems: -1, elem: first.elem}
	for _, v := range n.Inputs() {
		x := c.of(v)
		d.decodes = d.decodes || x.decodes
		if x.base != nil && (d.base == nil || x.stored.Bytes() > d.stored.Bytes()) {
			d.base, d.stored = x.base, x.stored
		}
	}
	switch rule := decoders[operator.Name(n.Op)]; {
	case rule != nil:
		rule(c, n, &d)
	case holdsAny(facts):
		d = first
		d.elem, d.decodes = c.of(n.Input(1)).elem, true
	case facts.Move.Keeps():
		d.base, d.stored, d.elems = first.base, first.stored, first.elems
	case facts.Predicate:
		d.elem = ir.Bool
	case facts.Elementwise == operator.Unary:
		d.elems = first.elems
	case facts.Elementwise == operator.Broadcasts:
		c.broadcast(n, &d)
	}
	return d
}

// broadcast is the result of an elementwise operator on inputs of which one has the elements of the output.
func (c *parameterCounter) broadcast(n *ir.Node, d *decoded) {
	d.elems = 0
	for _, v := range n.Inputs() {
		x := c.of(v)
		if x.elem.IsFloat() {
			d.elem = x.elem
		}
		if d.elems = max(d.elems, x.elems); x.elems < 0 {
			d.elems = -1
			return
		}
	}
}

// decoders are the operators with rules of their own.
var decoders = map[string]func(*parameterCounter, *ir.Node, *decoded){
	"Cast": func(c *parameterCounter, n *ir.Node, d *decoded) {
		from := c.of(n.Input(0))
		d.elems, d.elem = from.elems, ir.DType(n.Int("to", 0))
		d.decodes = d.decodes || narrow(from.elem)
	},
	"ConstantOfShape": func(_ *parameterCounter, n *ir.Node, d *decoded) {
		d.elems, d.base, d.stored = product(n.Input(0)), nil, ir.Spec{}
		d.elem = ir.Float
		if a := n.Attr("value"); a != nil && a.Tensor != nil {
			d.elem = a.Tensor.DType
		}
	},
	"CumSum":          func(c *parameterCounter, n *ir.Node, d *decoded) { d.elems = c.of(n.Input(0)).elems },
	"ScatterElements": scattered,
	"ScatterND":       scattered,
	"Reshape": func(c *parameterCounter, n *ir.Node, d *decoded) {
		x := c.of(n.Input(0))
		d.base, d.stored = x.base, x.stored
		if d.elems = product(n.Input(1)); d.elems < 0 {
			d.elems = x.elems
		}
	},
	// Values of a sparse weight are gathered by positions that are computed from a mask, and those of packed bytes by
	// the bytes, which are the weight.
	"Gather": func(c *parameterCounter, n *ir.Node, d *decoded) {
		values, positions := n.Input(0), n.Input(1)
		table, packed := c.of(values), c.of(positions)
		codebook := values.Const != nil && values.Const.DType.IsFloat()
		if !codebook && packed.base != nil && packed.stored.DType == ir.Uint8 && table.elems > byteValues &&
			table.elems%byteValues == 0 {
			d.base, d.stored, d.elems = packed.base, packed.stored, -1
			if packed.elems >= 0 {
				d.elems = packed.elems * (table.elems / byteValues)
			}
			return
		}
		if values.Const == nil || len(values.Const.Shape) != 1 || positions.Const != nil {
			return
		}
		d.elems = c.of(positions).elems
		d.becomes(n)
	},
}

// byteValues is the number of rows of a table of what each byte stands for.
const byteValues = 256

// scattered is the result of a node that writes the values of a sparse weight.
func scattered(c *parameterCounter, n *ir.Node, d *decoded) {
	d.elems = c.of(n.Input(0)).elems
	d.becomes(n)
}

// becomes makes d a weight of its own: constants of sparse forms, such as an empty list of values, may be part of
// several.
func (d *decoded) becomes(n *ir.Node) {
	d.decodes = true
	if d.elems >= 0 {
		d.base, d.stored = n.Outputs[0], ir.Spec{DType: d.elem, Shape: []int64{d.elems}}
	}
}

// narrow reports whether elements of the type may be quantized values.
func narrow(dt ir.DType) bool { return dt.Bits() > 0 && dt.Bits() <= 8 && dt != ir.Bool }

// product is the number of elements of the shape v, negative if it is not known.
func product(v *ir.Value) int64 {
	shape, ok := v.Ints()
	if !ok || slices.Min(append(slices.Clip(shape), 1)) < 1 {
		return -1
	}
	return (ir.Spec{Shape: shape}).Elems()
}

// noteScales notes the constants that n reads as scales and zero points, also if lookups of a tied table gather them
// too, and those by which the results of n are multiplied, if they are integers: of a product, or gathered from a
// table.
func (c *parameterCounter) noteScales(n *ir.Node) {
	facts := operator.Of(n)
	for i, v := range n.Inputs() {
		if _, param := facts.QuantizedBy(i); param {
			if d := c.of(v); d.base != nil {
				c.scales[d.base] = true
			}
		}
	}
	switch {
	case c.isTable(n, facts):
	case facts.HoldsQuantized() && !facts.QuantizedOutput && !holdsAny(facts) && ir.DefaultDomain(n.Op.Domain):
	default:
		return
	}
	found := c.lookup(n)
	for v, steps := n.Outputs[0], 0; v != nil && steps < rescaling; steps++ {
		u := reader(v)
		if u == nil {
			break
		}
		f, next := operator.Of(u), u.Outputs[0]
		switch {
		case holdsAny(f):
			c.noteScale(u.Input(1), rescaling)
			next = nil
		case u.Op.Is("Sub") && u.Input(1) == v: // n gathers zero points
			c.scales[c.of(n.Input(0)).base] = true
			next = nil
		case c.unpack(u, v, found):
		case f.Affine == operator.Factor:
			c.noteScale(u.Input(0), rescaling)
			c.noteScale(u.Input(1), rescaling)
			if found != nil {
				c.factors[u] = append(c.factors[u], found)
			}
			next = nil
		case !u.Op.Is("Cast") && !f.Move.Keeps() && f.Affine != operator.Offset:
			next = nil
		}
		v = next
	}
	if found != nil {
		c.lookups[found.base] = found
	}
}

// reader is the node that alone reads the elements of v; nil if there are others, or it is a graph output.
func reader(v *ir.Value) *ir.Node {
	var only *ir.Node
	for _, u := range v.Uses() {
		switch {
		case u.Node != nil && u.Node.Op.Is("Shape"):
		case u.Node == nil || only != nil:
			return nil
		default:
			only = u.Node
		}
	}
	return only
}

// A lookup is elements that are found in a table of quantized values for one index: stored ones, each of which stands
// for times/per others.
type lookup struct {
	base              *ir.Value
	elems, times, per int64
}

func (l *lookup) found() int64 { return l.elems * l.times / l.per }

// lookup is that of n, nil if it is none in a constant.
func (c *parameterCounter) lookup(n *ir.Node) *lookup {
	shape, known := c.shapes.Of(n.Input(0))
	if !c.isTable(n, operator.Of(n)) || !known {
		return nil
	}
	return &lookup{c.of(n.Input(0)).base, elemsOf(shape[1:]), 1, 1}
}

func elemsOf(shape []ir.Dim) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d.N
	}
	return n
}

// unpack reports whether u makes others of the numbers v that l finds: it looks them up in a constant, of what bytes or
// entries of a codebook stand for, or is arithmetic with constants.
func (c *parameterCounter) unpack(u *ir.Node, v *ir.Value, l *lookup) bool {
	if l == nil {
		return false
	}
	facts := operator.Of(u)
	switch table := c.of(u.Input(0)); {
	case facts.Input(0).Role == operator.Table && u.Input(1) == v && table.base != nil:
		shape, known := c.shapes.Of(u.Input(0))
		if !known {
			return false
		}
		c.scales[table.base] = true
		l.times *= elemsOf(shape[1:])
		return true
	case u.Input(0) != v || u.Input(1) == nil || u.Input(1).Const == nil || u.Input(1).Const.DType.IsFloat():
		return false
	}
	switch by := u.Input(1).Const; {
	case facts.Product() && len(by.Shape) == 2:
		l.times, l.per = l.times*by.Shape[1], l.per*by.Shape[0]
	case facts.Elementwise == operator.Broadcasts && len(by.Shape) < 2: // a vector makes several of each
		l.times *= by.Elems()
	default:
		return false
	}
	return true
}

// noteIndices notes the tables whose rows scale those of other ones, which have more elements: they are indices in a
// list of scales.
func (c *parameterCounter) noteIndices() {
	for _, ls := range c.factors {
		for _, l := range ls {
			if len(ls) == 2 && l.found() < max(ls[0].found(), ls[1].found()) {
				c.scales[l.base] = true
			}
		}
	}
}

// rescaling is the maximum number of nodes between an integer result and a constant that multiplies it.
const rescaling = 8

// isTable reports whether n gathers rows of a constant of quantized values.
func (c *parameterCounter) isTable(n *ir.Node, facts *operator.Facts) bool {
	v := n.Input(0)
	if facts.Input(0).Role != operator.Table || facts.Input(0).Quantized || v == nil {
		return false
	}
	if _, constant := c.decoded[n]; constant {
		return false
	}
	d := c.of(v)
	return d.base != nil && narrow(d.stored.DType) && !d.elem.IsFloat() && !unpacks(n, d.stored)
}

// unpacks reports whether n looks bytes up in a table, stored as it is, of what each one stands for.
func unpacks(n *ir.Node, table ir.Spec) bool {
	cast := n.Input(1).Producer()
	return len(table.Shape) == 2 && table.Shape[0] == byteValues && cast != nil && cast.Op.Is("Cast") &&
		opset.Elem(cast.Input(0)) == ir.Uint8
}

// noteScale notes the constants that v is computed from, by products, views, casts and lookups.
func (c *parameterCounter) noteScale(v *ir.Value, steps int) {
	if v == nil || steps == 0 {
		return
	}
	if d := c.of(v); d.base != nil {
		c.scales[d.base] = c.scales[d.base] || d.stored.DType.IsFloat()
		return
	}
	n := v.Producer()
	if n == nil {
		return
	}
	switch f := operator.Of(n); {
	case f.Affine == operator.Factor:
		c.noteScale(n.Input(0), steps-1)
		c.noteScale(n.Input(1), steps-1)
	case n.Op.Is("Cast"), f.Move.Moves():
		c.noteScale(n.Input(0), steps-1)
	}
}

// operands counts the weights that n reads as results of other nodes or as integers, and notes the nodes whose results
// it reads.
func (c *parameterCounter) operands(n *ir.Node) {
	facts := operator.Of(n)
	for i, v := range n.Inputs() {
		d := c.of(v)
		if v == nil || d.base == nil || !holdsParameters(ir.Use{Node: n, Index: i}) {
			continue
		}
		in := facts.Input(i)
		switch {
		case d.elem.IsFloat():
			if v.Const == nil {
				c.read(v, d)
			}
		case in.Quantized, in.Role == operator.Bias, i == 0 && c.isTable(n, facts):
			elems := unpacked(n, in, d)
			if l := c.lookups[d.base]; l != nil && !in.Quantized {
				elems = d.known() * l.times / l.per
			}
			c.weight(d, elems)
		}
	}
}

// read notes that the result v of a constant expression is read, and counts a decoded weight.
func (c *parameterCounter) read(v *ir.Value, d decoded) {
	if d.decodes {
		c.weight(d, d.known())
		return
	}
	c.used[v.Producer()] = true
}

// weight counts a weight, which is the same one where several nodes decode a constant.
func (c *parameterCounter) weight(d decoded, elems int64) {
	if len(d.stored.Shape) > 0 && !c.scales[d.base] {
		c.elems[d.base] = max(c.elems[d.base], elems)
	}
}

// known is the number of elements, those of the constant if it is not known.
func (d decoded) known() int64 {
	if d.elems < 0 {
		return d.stored.Elems()
	}
	return d.elems
}

// unpacked is the number of weights in the packed integers that n reads at an input.
func unpacked(n *ir.Node, in operator.Input, d decoded) int64 {
	k, cols := n.Int("K", 0), n.Int("N", 0)
	bits := n.Int("bits", n.Int("expert_weight_bits", 8))
	switch {
	case !in.Quantized || d.stored.DType.Bits() != 8:
		return d.known()
	case k > 0 && cols > 0: // blocks are padded
		return k * cols
	case bits > 0 && bits < 8:
		return d.known() * 8 / bits
	}
	return d.known()
}

// holdsParameters reports whether a use is not of a setting, scale or zero point.
func holdsParameters(u ir.Use) bool {
	if u.Node == nil {
		return true
	}
	facts := operator.Of(u.Node)
	_, param := facts.QuantizedBy(u.Index)
	return !param && facts.Input(u.Index).Role != operator.Setting
}

// reach finds the nodes of constant inputs whose results operators read, through others of them that do not decode
// weights. It counts the weights that graphs return.
func (c *parameterCounter) reach() {
	// Consumers first: whether the result of a node is used follows from the nodes that read it.
	for _, n := range slices.Backward(c.order) {
		d, v := c.decoded[n], n.Outputs[0]
		for _, u := range v.Uses() {
			if u.Node == nil && d.elem.IsFloat() && d.base != nil {
				c.read(v, d)
			}
			if next, constant := c.decoded[u.Node]; constant && !next.decodes {
				c.used[n] = c.used[n] || c.used[u.Node]
			}
		}
	}
}

// isRead reports whether an operator reads the float constant v as it is, or nothing reads it.
func (c *parameterCounter) isRead(v *ir.Value) bool {
	if len(v.Uses()) == 0 {
		return true
	}
	for _, u := range v.Uses() {
		d, constant := c.decoded[u.Node]
		if constant && !d.decodes && c.used[u.Node] || !constant && holdsParameters(u) {
			return true
		}
	}
	return false
}
