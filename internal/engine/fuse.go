package engine

import (
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A rule looks for a pattern that ends, or begins, with step i, and replaces it if it is there.
// It reports whether it did.
type rule struct {
	name  string
	apply func(f *fusion, i int) bool
}

// rules is the list of fusions, in the order in which they are tried: patterns that make one operator of
// several come before those that merge operators with their neighbours.
func rules() []rule {
	return []rule{
		{"gelu", fuseGelu},
		{"layer normalization", fuseLayerNorm},
		{"attention", fuseAttention},
		{"batch normalization", foldBatchNorm},
		{"dynamic int8", fuseQuantized},
		{"transposed weight", fuseTransposedWeight},
		{"bias", fuseBias},
		{"residual", fuseResidual},
		{"activation", fuseActivation},
		{"transposed operand", fuseTranspose},
		{"convolution of codes", fuseCodes},
	}
}

// A fusion is the work on one program. Steps that a pattern used up are nil until it ends.
type fusion struct {
	p     *program
	users [][]int // by slot: the steps that read it, once for each time
	by    []int   // by slot: the step that makes it
}

// fuse replaces patterns of steps of p by faster ones. Values that are kept stay.
func fuse(p *program) error {
	for _, r := range rules() {
		f := &fusion{p: p, by: p.producers()}
		f.users = make([][]int, len(p.slots))
		for i, s := range p.steps {
			for _, o := range s.in {
				if o != absent {
					f.users[o] = append(f.users[o], i)
				}
			}
		}
		for i := range p.steps {
			if p.steps[i] != nil {
				r.apply(f, i)
			}
		}
		p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return s == nil })
	}
	p.prune()
	return nil
}

// is reports whether step s is ONNX's operator of one of these names, and whole.
func (s *step) is(types ...string) bool {
	return s != nil && ir.DefaultDomain(s.ID.Domain) && slices.Contains(types, s.ID.Type) && s.whole()
}

// isOf is the same of another domain's operator.
func (s *step) isOf(id ir.OpID) bool { return s != nil && s.ID == id && s.whole() }

// whole reports whether s has the inputs that its operator cannot do without, and its first output: rules need not
// look. Where a model leaves some out, the operator says so when it runs.
func (s *step) whole() bool {
	n := 1
	switch s.ID.Type {
	case "Add", "Sub", "Mul", "Div", "Pow", "QuantizeLinear", "DequantizeLinear", "MatMul", "FusedMatMul", "MatMulInteger", "Gemm", "Conv", "FusedConv":
		n = 2
	case "BatchNormalization":
		n = 5
	}
	return len(s.in) >= n && !slices.Contains(s.in[:n], absent) && s.out[0] != absent
}

// maker is the step that makes slot o, nil for inputs and constants.
func (f *fusion) maker(o int) (*step, int) {
	if o == absent || f.by[o] == absent {
		return nil, absent
	}
	return f.p.steps[f.by[o]], f.by[o]
}

// user is the one step that reads slot o, nil if there are more, or if o is to be kept.
func (f *fusion) user(o int) (*step, int) {
	if o == absent || f.p.slots[o].keep || len(f.users[o]) != 1 {
		return nil, absent
	}
	i := f.users[o][0]
	return f.p.steps[i], i
}

// inside reports whether nobody but the given steps reads slot o.
func (f *fusion) inside(o int, steps ...int) bool {
	if f.p.slots[o].keep {
		return false
	}
	for _, u := range f.users[o] {
		if !slices.Contains(steps, u) {
			return false
		}
	}
	return true
}

// array is the constant in slot o if its data were read, nil otherwise.
func (f *fusion) array(o int) *ir.Array {
	if o == absent || f.p.slots[o].konst == nil {
		return nil
	}
	if a := f.p.slots[o].konst.array; op.Known(a) {
		return a
	}
	return nil
}

// constant is the type of the constant in slot o, nil if it is none.
func (f *fusion) constant(o int) *ir.Array {
	if o == absent || f.p.slots[o].konst == nil {
		return nil
	}
	return f.p.slots[o].konst.array
}

// weight is the type of the constant in slot o, or of what a Mul by a constant, or DequantizeLinear with one, makes
// of it: both are one once the program is loaded.
func (f *fusion) weight(o int) *ir.Array {
	s, _ := f.maker(o)
	switch {
	case s.is("Mul") && f.constant(s.in[1]) != nil:
		return f.constant(s.in[0])
	case s.is("DequantizeLinear") && !s.Has("output_dtype"):
		if codes, scale := f.constant(s.in[0]), f.constant(s.in[1]); codes != nil && scale != nil {
			return &ir.Array{DType: scale.DType, Shape: codes.Shape}
		}
	}
	return f.constant(o)
}

// scalar is the one float in slot o.
func (f *fusion) scalar(o int) (float32, bool) {
	a := f.array(o)
	if a == nil || a.Elems() != 1 || a.DType != ir.Float {
		return 0, false
	}
	return ir.View[float32](a)[0], true
}

// other is the input of a binary step that is not o, and o's position; absent if both or neither are.
func (s *step) other(o int) (int, int) {
	if len(s.in) != 2 || s.in[0] == s.in[1] {
		return absent, absent
	}
	switch o {
	case s.in[0]:
		return s.in[1], 0
	case s.in[1]:
		return s.in[0], 1
	}
	return absent, absent
}

// replace puts a new step at i that makes what step last makes, and takes out the given steps.
func (f *fusion) replace(at int, s *step, gone ...int) {
	for _, g := range slices.Compact(slices.Sorted(slices.Values(gone))) { // a pattern may meet one step from two sides
		for _, o := range f.p.steps[g].in {
			f.unread(o, g)
		}
		f.p.steps[g] = nil
	}
	f.p.steps[at] = s
	for _, o := range s.in {
		if o != absent {
			f.users[o] = append(f.users[o], at)
		}
	}
	for _, o := range s.out {
		if o != absent {
			f.by[o] = at
		}
	}
}

func (f *fusion) unread(o, step int) {
	if o == absent {
		return
	}
	if i := slices.Index(f.users[o], step); i >= 0 {
		f.users[o] = slices.Delete(slices.Clone(f.users[o]), i, i+1)
	}
}

// fused is a step of another operator in the place of like, whose label it keeps: nil if
// the table does not hold it.
func fused(id ir.OpID, version int64, like *step, in, out []int, attrs ...*ir.Attr) *step {
	row := lookup(id, version)
	if row == nil {
		return nil
	}
	s := &step{Node: op.NewNode(id, version, attrs, nil), op: row, in: in, out: out}
	s.Label, s.Seed, s.NumIn = like.Label, like.Seed, len(in)
	s.Wanted = make([]bool, len(out))
	for i, o := range out {
		s.Wanted[i] = o != absent
	}
	return s
}

// with is a copy of s under another operator, with further attributes and inputs.
func (s *step) with(id ir.OpID, in, out []int, attrs ...*ir.Attr) *step {
	all := slices.Collect(maps.Values(s.Attrs()))
	return fused(id, 1, s, in, out, append(all, attrs...)...)
}

func floatAttr(name string, v float32) *ir.Attr {
	return &ir.Attr{Name: name, Type: ir.AttrFloat, F: v}
}

func intAttr(name string, v int64) *ir.Attr {
	return &ir.Attr{Name: name, Type: ir.AttrInt, I: v}
}

func textAttr(name, v string) *ir.Attr { return &ir.Attr{Name: name, Type: ir.AttrString, S: v} }
