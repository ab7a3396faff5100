package engine

import (
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A rule replaces a pattern that starts or ends at step i. It reports whether it found one.
type rule struct {
	name  string
	apply func(f *fusion, i int) bool
}

// rules lists the fusions in the order in which they are tried: patterns of several nodes that form one operator come
// before those that merge an operator with its neighbours.
func rules() []rule {
	return []rule{
		{"unpacked bits", fuseUnpackBits},
		{"gelu", fuseGelu},
		{"swish", fuseSwish},
		{"layer normalization", fuseLayerNorm},
		{"attention", fuseAttention},
		{"batch normalization", foldBatchNorm},
		{"dynamic int8", fuseDynamicMatMul},
		{"transposed weight", fuseTransposedWeight},
		{"bias", fuseBias},
		{"residual", fuseResidual},
		{"activation", fuseActivation},
		{"transposed operand", fuseTranspose},
		{"slice of a slice", fuseSlices},
		{"cast of quantized values", fuseQuantizeCast},
		{"quantized convolution", fuseQDQConv},
		{"quantized addition", fuseQDQAdd},
		{"quantized maximum", fuseQDQMaxPool},
		{"quantized average", fuseQDQGlobalAveragePool},
		{"quantized matrix product", fuseQDQGemm},
	}
}

// A fusion is the work on one program. Fused steps are nil until it ends.
type fusion struct {
	p         *program
	consumers [][]int           // by slot: consuming steps, once per input
	producers []int             // by slot: producing step
	weights   map[int]*ir.Array // by slot: what weight returned for values that are computed
}

// fuse replaces patterns of steps of p by faster ones. Kept values are not fused away.
func fuse(p *program) error {
	// One pass over the steps for each rule, in the order of the table: a later rule matches what earlier ones made,
	// such as an activation after a product with a bias.
	for _, r := range rules() {
		// Removed steps shift positions, so the indices are made anew.
		f := newFusion(p)
		for i := range p.steps {
			if p.steps[i] != nil {
				r.apply(f, i)
			}
		}
		p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return s == nil })
	}
	// After all rules: a convolution gets its activation and residual before its images get another layout.
	convolveIntegers(p)
	// Dequantized weights and transposes that no step reads any more.
	p.prune()
	return nil
}

func newFusion(p *program) *fusion {
	f := &fusion{p: p, producers: p.producers(), weights: map[int]*ir.Array{}}
	f.consumers = make([][]int, len(p.slots))
	for i, s := range p.steps {
		for _, o := range s.in {
			if o != absent {
				f.consumers[o] = append(f.consumers[o], i)
			}
		}
	}
	return f
}

// is reports whether step s is a complete ONNX operator of one of these names.
func (s *step) is(types ...string) bool {
	return s != nil && ir.DefaultDomain(s.ID.Domain) && slices.Contains(types, s.ID.Type) && s.complete()
}

// isOf is the same for an operator of another domain.
func (s *step) isOf(id ir.OpID) bool { return s != nil && s.ID == id && s.complete() }

// complete reports whether s has its required inputs and its first output, so that rules need not check. The operator
// itself reports missing ones at run time.
func (s *step) complete() bool {
	n := 1
	switch s.ID.Type {
	case "Add", "Sub", "Mul", "Div", "Pow", "QuantizeLinear", "DequantizeLinear", "MatMul", "FusedMatMul",
		"MatMulInteger", "Gemm", "Conv", "FusedConv":
		n = 2
	case "BatchNormalization":
		n = 5
	}
	return len(s.in) >= n && !slices.Contains(s.in[:n], absent) && s.out[0] != absent
}

// producer is the step that writes slot o, nil for inputs and constants.
func (f *fusion) producer(o int) (*step, int) {
	if o == absent || f.producers[o] == absent {
		return nil, absent
	}
	return f.p.steps[f.producers[o]], f.producers[o]
}

// onlyConsumer is the one step that reads slot o, nil if there are several or o is to be kept.
func (f *fusion) onlyConsumer(o int) (*step, int) {
	// A kept value must exist after the run, so that nothing that computes it may be fused into the next step.
	if o == absent || f.p.slots[o].keep || len(f.consumers[o]) != 1 {
		return nil, absent
	}
	i := f.consumers[o][0]
	return f.p.steps[i], i
}

// consumedBy reports whether only the given steps read slot o.
func (f *fusion) consumedBy(o int, steps ...int) bool {
	if f.p.slots[o].keep {
		return false
	}
	for _, u := range f.consumers[o] {
		if !slices.Contains(steps, u) {
			return false
		}
	}
	return true
}

// array is the constant in slot o if its data were read, nil otherwise.
func (f *fusion) array(o int) *ir.Array {
	if o == absent || f.p.slots[o].constant == nil {
		return nil
	}
	if a := f.p.slots[o].constant.array; op.IsKnown(a) {
		return a
	}
	return nil
}

// constant is the type of the constant in slot o, nil if it is not constant.
func (f *fusion) constant(o int) *ir.Array {
	if o == absent || f.p.slots[o].constant == nil {
		return nil
	}
	return f.p.slots[o].constant.array
}

// weightReach is the number of operators between a weight and its constants that weight follows, so that its stack does
// not grow with the graph.
const weightReach = 100

// weight is the type of the value in slot o if it is constant or computed from constants, as sparse and quantized forms
// of weights are: it is constant-folded on load. It is nil for other values, and if the type depends on data that are
// not read before.
func (f *fusion) weight(o int) *ir.Array { return f.weightWithin(o, weightReach) }

func (f *fusion) weightWithin(o, reach int) *ir.Array {
	if o == absent || f.constant(o) != nil || reach == 0 {
		return f.constant(o)
	}
	// A weight in the forms below opset 21 is a chain of operators, which several rules ask for.
	if w, ok := f.weights[o]; ok {
		return w
	}
	w := f.computed(o, reach)
	f.weights[o] = w
	return w
}

// computed is the type of the value in slot o if a step computes it from constants.
func (f *fusion) computed(o, reach int) *ir.Array {
	s, _ := f.producer(o)
	// Only steps that constant folding removes: others compute the value in each run.
	if s == nil || s.op.Impure || s.op.Shape == nil || s.bodies != nil || len(s.in) == 0 {
		return nil
	}
	in := make([]*ir.Array, len(s.in))
	for i, j := range s.in {
		if in[i] = f.weightWithin(j, reach-1); in[i] == nil && j != absent {
			return nil
		}
	}
	specs, err := s.shape(in)
	if err != nil {
		return nil
	}
	spec := specs[slices.Index(s.out, o)]
	return &ir.Array{DType: spec.DType, Shape: spec.Shape}
}

// scalar is the one float in slot o.
func (f *fusion) scalar(o int) (float32, bool) {
	a := f.array(o)
	if a == nil || a.Elems() != 1 || a.DType != ir.Float {
		return 0, false
	}
	return ir.View[float32](a)[0], true
}

// otherInput is the input of a binary step that is not o, with its position; absent if both or neither are o.
func (s *step) otherInput(o int) (int, int) {
	// x + x has no other operand.
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

// replace puts a new step at i with the outputs of step last, and removes the given steps.
func (f *fusion) replace(at int, s *step, gone ...int) {
	// Before the new step is registered, whose inputs are mostly those of the steps that go.
	for _, g := range slices.Compact(slices.Sorted(slices.Values(gone))) { // a pattern may match one step twice
		for _, o := range f.p.steps[g].in {
			f.unread(o, g)
		}
		f.p.steps[g] = nil
	}
	f.p.steps[at] = s
	for _, o := range s.in {
		if o != absent {
			f.consumers[o] = append(f.consumers[o], at)
		}
	}
	for _, o := range s.out {
		if o != absent {
			f.producers[o] = at
		}
	}
}

func (f *fusion) unread(o, step int) {
	if o == absent {
		return
	}
	if i := slices.Index(f.consumers[o], step); i >= 0 {
		// A copy, as callers iterate over the list.
		f.consumers[o] = slices.Delete(slices.Clone(f.consumers[o]), i, i+1)
	}
}

// fused is a step of another operator in place of like, whose label it keeps: nil if the engine does not implement the
// operator.
func fused(id ir.OpID, version int64, like *step, in, out []int, attrs ...*ir.Attr) *step {
	row := lookup(id, version)
	if row == nil {
		return nil
	}
	s := &step{Node: op.NewNode(id, version, attrs, nil), op: row, in: in, out: out}
	s.Label, s.Seed, s.NumIn = like.Label, like.Seed, len(in)
	s.Consumed = make([]bool, len(out))
	for i, o := range out {
		s.Consumed[i] = o != absent
	}
	return s
}

// with is a copy of s with another operator, and further inputs and attributes.
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
