package report

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// countParameters is the number of parameters of m: elements of its float constants of rank 1 or more, each constant once, quantized and
// sparse weights as the dense weights that operators compute with. Settings of operators, such as the factors of Resize, are no parameters,
// nor are scales, zero points, indices and other integers.
//
// It follows constants through the nodes that decode them: DequantizeLinear, Cast and Mul, nodes that unpack bytes, scatter or gather. What
// such nodes compute counts in place of the constants. Integers that operators read directly count where the operator has quantized weights.
func countParameters(ctx context.Context, m *ir.Model) (int64, error) {
	c := newParameterCounter(m)
	for n := range m.Nodes() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		c.noteScales(n)
	}
	for n := range m.Nodes() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, constant := c.decoded[n]; !constant {
			c.operands(n)
		}
	}
	c.reach()
	total := int64(0)
	for _, n := range c.elems {
		total += n
	}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if _, known := c.elems[v]; !known && pass.IsWeight(v.Const) && !c.scales[v] && c.isRead(v) {
				total += v.Const.Elems()
			}
		}
	}
	return total, nil
}

// A parameterCounter follows constants to the operators that read them.
type parameterCounter struct {
	decoded map[*ir.Node]decoded // nodes of constant inputs
	order   []*ir.Node           // of them, producers first
	used    map[*ir.Node]bool    // those whose output operators read as it is, or graphs return
	scales  map[*ir.Value]bool   // constants by which results of integer operators are multiplied
	elems   map[*ir.Value]int64  // of weights, by the constant with most of their bytes
}

// newParameterCounter finds what the constant expressions of m decode.
func newParameterCounter(m *ir.Model) *parameterCounter {
	c := &parameterCounter{decoded: map[*ir.Node]decoded{}, used: map[*ir.Node]bool{}, scales: map[*ir.Value]bool{}, elems: map[*ir.Value]int64{}}
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
	// Values of a sparse weight are gathered by positions that are computed from a mask, and those of packed bytes by the bytes, which are the weight.
	"Gather": func(c *parameterCounter, n *ir.Node, d *decoded) {
		values, positions := n.Input(0), n.Input(1)
		table, packed := c.of(values), c.of(positions)
		codebook := values.Const != nil && values.Const.DType.IsFloat()
		if !codebook && packed.base != nil && packed.stored.DType == ir.Uint8 && table.elems > byteValues && table.elems%byteValues == 0 {
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

// becomes makes d a weight of its own: constants of sparse forms, such as an empty list of values, may be part of several.
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

// noteScales notes the constants that n reads as scales and zero points, also if lookups of a tied table gather them too, and those by which the
// results of n are multiplied, if they are integers: of a product, or gathered from a table.
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
	for v, steps := n.Outputs[0], 0; v != nil && steps < rescaling; steps++ {
		u := reader(v)
		if u == nil {
			return
		}
		switch f := operator.Of(u); {
		case holdsAny(f):
			c.noteScale(u.Input(1), rescaling)
			return
		case u.Op.Is("Sub") && u.Input(1) == v: // n gathers zero points
			c.scales[c.of(n.Input(0)).base] = true
			return
		case f.Affine == operator.Factor:
			c.noteScale(u.Input(0), rescaling)
			c.noteScale(u.Input(1), rescaling)
			return
		case u.Op.Is("Cast"), f.Move.Keeps(), f.Affine == operator.Offset, unpacks(u) > 0:
			v = u.Outputs[0]
		default:
			return
		}
	}
}

// rescaling is the maximum number of nodes between an integer result and a constant that multiplies it.
const rescaling = 8

// reader is the only node that reads the elements of v, not only its shape; nil if there are none or several.
func reader(v *ir.Value) (n *ir.Node) {
	for _, u := range v.Uses() {
		switch {
		case u.Node != nil && u.Node.Op.Is("Shape"):
		case u.Node == nil || n != nil && n != u.Node:
			return nil
		default:
			n = u.Node
		}
	}
	return n
}

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
	return d.base != nil && narrow(d.stored.DType) && !d.elem.IsFloat() && unpacks(n) == 0
}

// unpacks is the number of elements of a byte, if n looks bytes up in a table of what each one stands for; else 0.
func unpacks(n *ir.Node) int64 {
	if !n.Op.Is("Gather") {
		return 0
	}
	cast, table := n.Input(1).Producer(), n.Input(0).Const
	if table == nil || len(table.Shape) != 2 || table.Shape[0] != byteValues || cast == nil || !cast.Op.Is("Cast") || opset.Elem(cast.Input(0)) != ir.Uint8 {
		return 0
	}
	return table.Shape[1]
}

// rows is the number of weights in a table of bytes or their packed elements, of which n gathers rows.
func (d decoded) rows(n *ir.Node) int64 {
	if cast := reader(n.Outputs[0]); cast != nil && cast.Op.Is("Cast") {
		if lookup := reader(cast.Outputs[0]); lookup != nil {
			return d.known() * max(1, unpacks(lookup))
		}
	}
	return d.known()
}

// noteScale notes the constants that v is computed from, by products, views, casts and lookups.
func (c *parameterCounter) noteScale(v *ir.Value, steps int) {
	if v == nil || steps == 0 {
		return
	}
	if d := c.of(v); d.base != nil {
		c.scales[d.base] = d.stored.DType.IsFloat()
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

// operands counts the weights that n reads as results of other nodes or as integers, and notes the nodes whose results it reads.
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
		case i == 0 && c.isTable(n, facts):
			c.weight(d, d.rows(n))
		case in.Quantized, in.Role == operator.Bias:
			c.weight(d, unpacked(n, in, d))
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

// reach finds the nodes of constant inputs whose results operators read, through others of them that do not decode weights. It counts the
// weights that graphs return.
func (c *parameterCounter) reach() {
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
