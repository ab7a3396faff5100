package partition

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A rule computes the divisions of a node's inputs from those of its outputs.
type rule struct {
	*division
	n       *ir.Node
	outs    []split // of outputs that are read; a rule adds those of outputs that no divided node reads
	ins     []split // result; without blocks for inputs that are read as a whole
	lengths []int64 // result: numbers of heads in attributes
}

// rules are those of operators that the table of operators does not cover.
var rules = map[string]func(*rule) bool{
	"Concat":                       (*rule).concat,
	"Expand":                       (*rule).expand,
	"Gather":                       (*rule).gather,
	"LayerNormalization":           (*rule).normalization,
	"MatMul":                       (*rule).matMul,
	"RMSNormalization":             (*rule).normalization,
	"RotaryEmbedding":              (*rule).rotary,
	"SimplifiedLayerNormalization": (*rule).normalization,
	"Slice":                        (*rule).slice,
	"Split":                        (*rule).split,
	"Transpose":                    (*rule).transpose,

	"Attention":                         (*rule).attention,
	"com.microsoft.GroupQueryAttention": (*rule).groupQueryAttention,
	"com.microsoft.MultiHeadAttention":  (*rule).multiHeadAttention,
	"com.microsoft.RotaryEmbedding":     (*rule).rotary,
}

// apply reports whether n computes the parts of its outputs from parts of its inputs.
func (r *rule) apply() bool {
	f := operator.Of(r.n)
	if special := rules[operator.Name(r.n.Op)]; special != nil {
		return special(r)
	}
	if len(r.n.Outputs) == 0 || len(r.outs[0].blocks) == 0 {
		return false
	}
	switch {
	case f.Elementwise == operator.Unary:
		return r.sameAsOutput()
	case f.Elementwise == operator.Broadcasts:
		return r.broadcasts()
	case f.Distribution:
		return r.distribution(f)
	case f.Move == operator.View:
		return r.view()
	case f.Reduction:
		return r.reduction()
	}
	return false
}

// out is the division of the first output.
func (r *rule) out() split { return r.outs[0] }

// sameAsOutput divides the first input like the first output.
func (r *rule) sameAsOutput() bool {
	r.ins[0] = r.out()
	return len(r.out().blocks) > 0
}

func (r *rule) broadcasts() bool {
	for i, v := range r.n.Inputs() {
		if v == nil {
			continue
		}
		var ok bool
		if r.ins[i], ok = r.broadcast(r.n.Outputs[0], v, r.out()); !ok {
			return false
		}
	}
	return true
}

// broadcast is the division of operand v of an output that is divided by s: axes count from the last one, and an axis
// of length 1 is not divided.
func (d *division) broadcast(out, v *ir.Value, s split) (split, bool) {
	a, b, ok := d.shapes(v)
	if !ok {
		return split{}, false
	}
	axis := s.axis - (d.rank(out) - len(a))
	switch {
	case axis < 0 || a[axis] == 1 && b[axis] == 1:
		// Every device reads all of it.
		return split{}, true
	case a[axis] == s.length() && b[axis] == s.length():
		return split{axis, s.blocks}, true
	}
	return split{}, false
}

// attr is an axis in an attribute, counted from the first one.
func (r *rule) attr(name string, def int64, rank int) int {
	axis := r.n.Int(name, def)
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis)
}

func (r *rule) distribution(f *operator.Facts) bool {
	rank := r.rank(r.n.Outputs[0])
	// Before opset 13 Softmax and its relatives are computed over all axes from axis on, since then over one.
	if r.n.Graph().Opset("") < f.FlattensBefore {
		return r.out().axis < r.attr("axis", 1, rank) && r.sameAsOutput()
	}
	return r.out().axis != r.attr("axis", -1, rank) && r.sameAsOutput()
}

func (r *rule) normalization() bool {
	// Mean and variance are those of all axes from axis on, which each device has to have whole.
	return r.out().axis < r.attr("axis", -1, r.rank(r.n.Outputs[0])) && r.sameAsOutput()
}

func (r *rule) transpose() bool {
	rank := r.rank(r.n.Outputs[0])
	// The default of perm reverses the axes.
	from := rank - 1 - r.out().axis
	if perm := r.n.Attr("perm"); perm != nil && len(perm.Ints) == rank {
		from = int(perm.Ints[r.out().axis])
	}
	r.ins[0] = split{from, r.out().blocks}
	return true
}

// view finds the axis of the input that holds the divided axis of the output. It has to be the same whatever the
// dynamic axes.
func (r *rule) view() bool {
	in, in2, known := r.shapes(r.n.Input(0))
	out, out2, also := r.shapes(r.n.Outputs[0])
	if !known || !also {
		return false
	}
	// In both planned runs: an axis that is divided for one size of the dynamic axes need not be for another.
	s, ok := reshaped(in, out, r.out())
	t, ok2 := reshaped(in2, out2, r.out())
	if !ok || !ok2 || !s.equal(t) || !r.copiesNone(s) {
		return false
	}
	r.ins[0] = s
	return true
}

// copiesNone reports whether no 0 in the shape of a Reshape copies the divided axis of the input to an axis that is not
// divided.
func (r *rule) copiesNone(in split) bool {
	shape, ok := r.n.Input(1).Ints()
	return !r.n.Op.Is("Reshape") || !ok || in.axis == r.out().axis || in.axis >= len(shape) || shape[in.axis] != 0
}

// reshaped is the division of a tensor of shape in whose elements in shape out are divided by s. An axis that holds
// several times the elements before the divided axis, such as packed queries, keys and values, has as many blocks.
func reshaped(in, out []int64, s split) (split, bool) {
	before, at := ir.Spec{Shape: out[:s.axis]}.Elems(), int64(1)
	// at is the number of elements before the axis. The divided axis begins within the first axis that is not
	// passed by then.
	for axis, n := range in {
		if n <= 1 || before >= at*n {
			at *= max(1, n)
			continue
		}
		blocks := before / at
		if before%at != 0 || n%blocks != 0 {
			return split{}, false
		}
		scaled, ok := scale(s.blocks, n/blocks, s.length())
		return split{axis, slices.Repeat(scaled, int(blocks))}, ok
	}
	return split{}, false
}

// scale multiplies blocks by to/from, if all results are whole numbers.
func scale(blocks []int64, to, from int64) ([]int64, bool) {
	if to%from != 0 && from%to != 0 {
		return nil, false
	}
	list := make([]int64, len(blocks))
	for i, b := range blocks {
		if list[i] = b * to / from; b*to%from != 0 {
			return nil, false
		}
	}
	return list, true
}

func (r *rule) expand() bool {
	var ok bool
	r.ins[0], ok = r.broadcast(r.n.Outputs[0], r.n.Input(0), r.out())
	return ok
}

func (r *rule) concat() bool {
	// Parts of the axis would be parts of different inputs.
	if r.out().axis == r.attr("axis", 0, r.rank(r.n.Outputs[0])) {
		return false
	}
	for i := range r.ins {
		r.ins[i] = r.out()
	}
	return true
}

func (r *rule) gather() bool {
	rank, more := r.rank(r.n.Input(0)), r.rank(r.n.Input(1))
	axis, from := r.attr("axis", 0, rank), r.out().axis
	// The axes of the indices replace the gathered one: those after it are shifted, and those of the indices are
	// of no input axis that could be divided.
	if from >= axis {
		if from -= more - 1; from <= axis {
			return false
		}
	}
	r.ins[0] = split{from, r.out().blocks}
	return true
}

// slice keeps axes that it does not cut.
func (r *rule) slice() bool {
	axes, ok := r.n.Input(3).Ints()
	if a := r.n.Attr("axes"); a != nil {
		axes, ok = a.Ints, true
	}
	if !ok && r.n.Input(3) != nil {
		return false
	}
	rank := r.rank(r.n.Outputs[0])
	// Before opset 10 axes are attributes, and starts without axes are about the first ones.
	if !ok { // the first ones
		starts := r.n.Attr("starts")
		if starts == nil {
			return false
		}
		return r.out().axis >= len(starts.Ints) && r.sameAsOutput()
	}
	return !slices.ContainsFunc(axes, func(a int64) bool { return (int(a)+rank)%rank == r.out().axis }) && r.sameAsOutput()
}

// split packs the blocks of outputs along the divided axis, and otherwise divides each output.
func (r *rule) split() bool {
	axis := r.attr("axis", 0, r.rank(r.n.Input(0)))
	packed := split{axis: axis}
	for i := range r.n.Outputs {
		s := r.outs[i]
		if len(s.blocks) == 0 || s.axis != r.out().axis {
			return false
		}
		packed.blocks = append(packed.blocks, s.blocks...)
		if s.axis != axis && !s.equal(r.out()) {
			return false
		}
	}
	if r.out().axis != axis {
		return r.sameAsOutput()
	}
	r.ins[0] = packed
	return true
}

// reduction keeps axes that are not reduced.
func (r *rule) reduction() bool {
	axes, ok := r.n.Input(1).Ints()
	if a := r.n.Attr("axes"); a != nil {
		axes, ok = a.Ints, true
	}
	if !ok || len(axes) == 0 {
		return false
	}
	rank := r.rank(r.n.Input(0))
	reduced := func(axis int) bool {
		return slices.ContainsFunc(axes, func(a int64) bool { return (int(a)+rank)%rank == axis })
	}
	from := r.out().axis
	if r.n.Int("keepdims", 1) == 0 {
		// Each axis that was removed before it shifts the axis by one.
		for axis := 0; axis <= from; axis++ {
			if reduced(axis) {
				from++
			}
		}
	}
	r.ins[0] = split{from, r.out().blocks}
	return from < rank && !reduced(from)
}

// matMul multiplies matrices of activations: batches of both are divided, or the rows of the first, or the columns of
// the second.
func (r *rule) matMul() bool {
	a, b, rank := r.n.Input(0), r.n.Input(1), r.rank(r.n.Outputs[0])
	if r.rank(a) < 2 || r.rank(b) < 2 {
		return false
	}
	switch s := r.out(); s.axis {
	case rank - 1:
		r.ins[1] = split{r.rank(b) - 1, s.blocks}
		return true
	case rank - 2:
		r.ins[0] = split{r.rank(a) - 2, s.blocks}
		return true
	}
	return r.broadcasts()
}

func (r *rule) rotary() bool {
	if r.rank(r.n.Input(0)) == 4 {
		// batch × heads × positions × size.
		return r.out().axis == 1 && r.sameAsOutput()
	}
	heads := r.n.Int("num_heads", 0)
	return heads > 0 && r.out().axis == 2 && r.headed(heads) && r.sameAsOutput()
}

// headed adds numbers of heads, whole numbers of which are on each device.
func (r *rule) headed(heads ...int64) bool {
	r.lengths = append(r.lengths, heads...)
	return !slices.Contains(heads, 0)
}

// An attentionLayout is the inputs and outputs of an attention operator besides queries, keys and values, which are the
// first three.
type attentionLayout struct {
	heads, keyHeads int64
	caches          []int // inputs of heads of keys on axis 1
	scores          []int // inputs that broadcast to batch × heads of queries × queries × keys
	sinks           []int // inputs with an element for each head of queries
	most            int   // number of supported inputs
}

func (r *rule) groupQueryAttention() bool {
	return r.heads(attentionLayout{
		heads: r.n.Int("num_heads", 0), keyHeads: r.n.Int("kv_num_heads", 0),
		caches: []int{3, 4}, scores: []int{10}, sinks: []int{11}, most: 12,
	})
}

func (r *rule) multiHeadAttention() bool {
	heads := r.n.Int("num_heads", 0)
	if bias := r.n.Input(3); bias != nil {
		length := r.types.axis(bias, 0)
		if r.rank(bias) != 1 || length%3 != 0 {
			return false
		}
		r.ins[3] = split{0, slices.Repeat([]int64{length / 3}, 3)}
	}
	return r.heads(attentionLayout{heads: heads, keyHeads: heads, caches: []int{6, 7}, scores: []int{5}, most: 8})
}

func (r *rule) attention() bool {
	l := attentionLayout{
		heads:    r.n.Int("q_num_heads", 0),
		keyHeads: r.n.Int("kv_num_heads", 0),
		caches:   []int{4, 5},
		scores:   []int{3},
		most:     7,
	}
	if r.rank(r.n.Input(0)) == 4 {
		l.heads, l.keyHeads = r.types.axis(r.n.Input(0), 1), r.types.axis(r.n.Input(1), 1)
	}
	return r.heads(l)
}

// heads divides an attention operator by heads. Outputs are the result and the caches of keys and values.
func (r *rule) heads(l attentionLayout) bool {
	columns := 2
	if r.rank(r.n.Outputs[0]) == 4 {
		columns = 1
	}
	if !r.headed(l.heads, l.keyHeads) || len(r.n.Inputs()) > l.most || len(r.n.Outputs) > 3 || r.out().axis != columns {
		return false
	}
	keys := split{1, []int64{l.keyHeads}}
	// No consumer has to read the caches divided: they follow from the heads.
	for i, v := range r.n.Outputs[1:] {
		if v != nil && len(v.Uses()) > 0 {
			r.outs[i+1] = keys
		}
	}
	for _, i := range l.caches {
		r.whenSet(i, keys)
	}
	for _, i := range l.sinks {
		r.whenSet(i, split{0, []int64{l.heads}})
	}
	for _, i := range l.scores {
		if v := r.n.Input(i); v != nil && r.rank(v) >= 3 {
			// A mask that all heads share has length 1 there, and is read whole.
			if axis := r.rank(v) - 3; r.types.axis(v, axis) == l.heads && l.heads > 1 {
				r.ins[i] = split{axis, []int64{l.heads}}
			}
		}
	}
	return r.projected(l)
}

func (r *rule) whenSet(i int, s split) {
	if r.n.Input(i) != nil {
		r.ins[i] = s
	}
}

// projected divides queries, keys and values: batch × heads × positions × size, batch × positions × columns, or all
// three packed in the columns of the first input.
func (r *rule) projected(l attentionLayout) bool {
	q, k, v := r.n.Input(0), r.n.Input(1), r.n.Input(2)
	// Packed: the columns of queries, keys and values, each of which is divided.
	if k == nil && v == nil {
		size := r.types.axis(q, 2) / (l.heads + 2*l.keyHeads)
		r.ins[0] = split{2, []int64{l.heads * size, l.keyHeads * size, l.keyHeads * size}}
		return r.rank(q) == 3 && operator.Of(r.n).Attention
	}
	for i, heads := range []int64{l.heads, l.keyHeads, l.keyHeads} {
		x := r.n.Input(i)
		switch {
		case x == nil:
			return false
		case r.rank(x) == 4:
			r.ins[i] = split{1, []int64{heads}}
		case r.rank(x) == 3:
			r.ins[i] = split{2, []int64{r.types.axis(x, 2)}}
		default:
			return false
		}
	}
	return true
}
