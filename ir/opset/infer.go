package opset

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// visits bounds the values that one query visits. Shapes seldom hang on
// anything further back than the last layer, and a caller may ask of every value.
const visits = 4096

// unbounded is for questions that share what they found: all of them together
// visit each value once.
const unbounded = -1

// maxElems is the size up to which constants are read: shapes, axes, scales.
const maxElems = 64

// Rank is the number of v's dimensions, if that is known.
func Rank(v *ir.Value) (int, bool) {
	s, ok := Shape(v)
	return len(s), ok
}

// Shape is v's shape, if at least its rank is known: a constant's own, else what
// the model states, else what follows from the node that makes v. Dimensions that
// are not known have N < 0. It reads payloads of a few elements that hold shapes
// or axes, visits a bounded number of values, and does not change the model.
func Shape(v *ir.Value) ([]ir.Dim, bool) { return newInference(visits).shape(v) }

// Shapes answers questions about the values of a model that does not change meanwhile: all of them together visit each
// value once.
type Shapes struct{ inference *inference }

// NewShapes returns the answers of a model, none of them found yet.
func NewShapes() Shapes { return Shapes{newInference(unbounded)} }

// ShapesFor returns the answers for inputs of these shapes.
func ShapesFor(inputs map[*ir.Value][]int64) Shapes {
	f := newInference(unbounded)
	f.sizes, f.values = inputs, map[*ir.Value][]float64{}
	return Shapes{f}
}

// Of is Shape of v.
func (s Shapes) Of(v *ir.Value) ([]ir.Dim, bool) { return s.inference.shape(v) }

// Elem is the element type of v.
func (s Shapes) Elem(v *ir.Value) ir.DType { return s.inference.elem(v) }

// Elem is v's element type by the same means, Undefined if it is not known.
func Elem(v *ir.Value) ir.DType { return newInference(visits).elem(v) }

// inference remembers what it found; what is being looked for counts as unknown,
// which ends circles.
type inference struct {
	left   int
	depth  int                    // of the search: queries that led to each other
	shapes map[*ir.Value][]ir.Dim // nil: unknown
	elems  map[*ir.Value]ir.DType

	sizes  map[*ir.Value][]int64   // shapes of the graph's inputs; nil where they are as declared
	values map[*ir.Value][]float64 // computed from sizes; nil: unknown
}

func newInference(visits int) *inference {
	return &inference{left: visits, shapes: map[*ir.Value][]ir.Dim{}, elems: map[*ir.Value]ir.DType{}}
}

// maxDepth bounds the recursion along chains of values that are not known yet.
const maxDepth = 4096

// visit reports whether one more value may be visited; leave ends the visit.
func (f *inference) visit() bool {
	if f.left == 0 || f.depth == maxDepth {
		return false
	}
	f.left--
	f.depth++
	return true
}

func (f *inference) leave() { f.depth-- }

func (f *inference) shape(v *ir.Value) ([]ir.Dim, bool) {
	if v == nil {
		return nil, false
	}
	// The constant before all else, as a declaration may be wrong or symbolic.
	if v.Const != nil && fixed(v) {
		return dims(v.Const.Shape), true
	}
	if s, ok := f.sizes[v]; ok {
		return dims(s), true
	}
	n := v.Producer()
	around, element := iterationAround(v)
	declared := v.Type != nil && v.Type.Shape != nil
	// With given sizes of the inputs declarations are only used for what does not follow from them: they may have
	// been made for other sizes.
	if declared && (f.sizes == nil || n == nil && !element) {
		return v.Type.Shape, true
	}
	if s, ok := f.shapes[v]; ok {
		return s, s != nil
	}
	if n == nil && !element || !f.visit() {
		return nil, false
	}
	defer f.leave()
	// Unknown while it is looked for: a cycle through a body ends here.
	f.shapes[v] = nil
	var s []ir.Dim
	var ok bool
	if element {
		s, ok = around.input(f, slices.Index(v.Graph().Inputs, v))
	} else {
		s, ok = f.inferred(n, output(n, v))
	}
	if declared {
		s, ok = refined(s, ok, v.Type.Shape), true
	}
	if !ok {
		return nil, false
	}
	f.shapes[v] = s
	return s, true
}

// An iteration is a node whose body runs repeatedly: Scan or Loop.
type iteration interface {
	// input is the shape of input i of the body.
	input(f *inference, i int) ([]ir.Dim, bool)
}

// iterationAround is the node of whose body v is an input.
func iterationAround(v *ir.Value) (iteration, bool) {
	if !v.IsInput() {
		return nil, false
	}
	owner := v.Graph().Owner
	if s, ok := scanOf(owner); ok {
		return s, true
	}
	return loopOf(owner)
}

// inferred is the shape of n's output i by the rule for its operator.
func (f *inference) inferred(n *ir.Node, i int) ([]ir.Dim, bool) {
	rule := shapeRuleOf(operator.Name(n.Op))
	if rule == nil {
		return nil, false
	}
	return rule(f, n, i)
}

// refined is the inferred shape s, if it is known and of the declared rank, with declared sizes where it has none.
func refined(s []ir.Dim, ok bool, declared []ir.Dim) []ir.Dim {
	if !ok || len(s) != len(declared) {
		return declared
	}
	out := append([]ir.Dim{}, s...)
	for i, d := range declared {
		if !out[i].Known() {
			out[i] = d
		}
	}
	return out
}

func (f *inference) elem(v *ir.Value) ir.DType {
	if v == nil {
		return ir.Undefined
	}
	if v.Const != nil {
		return v.Const.DType
	}
	if v.Type != nil && v.Type.Elem != ir.Undefined {
		return v.Type.Elem
	}
	if t, ok := f.elems[v]; ok {
		return t
	}
	n := v.Producer()
	if n == nil || !ir.DefaultDomain(n.Op.Domain) || !f.visit() {
		return ir.Undefined
	}
	defer f.leave()
	f.elems[v] = ir.Undefined
	f.elems[v] = f.elemOf(n, output(n, v))
	return f.elems[v]
}

// output is the index of v among n's outputs.
func output(n *ir.Node, v *ir.Value) int {
	for i, o := range n.Outputs {
		if o == v {
			return i
		}
	}
	return -1
}

// dims are fixed sizes; never nil, as that means an unknown rank.
func dims(ns []int64) []ir.Dim {
	ds := make([]ir.Dim, len(ns))
	for i, n := range ns {
		ds[i] = ir.Dim{N: n}
	}
	return ds
}

// unknown is a shape of which only the rank is known.
func unknown(rank int) []ir.Dim {
	ds := make([]ir.Dim, rank)
	for i := range ds {
		ds[i] = ir.Dim{N: -1}
	}
	return ds
}

// fixed reports whether v is a constant that no caller can override. Up to IR 3
// every initializer is among the inputs and runtimes take it for constant.
func fixed(v *ir.Value) bool {
	return v.Const != nil && (v.Graph().Model().IRVersion < 4 || !v.IsInput())
}

// constInts are the elements of a small int64 or int32 constant whose payload is
// at hand without computing anything.
func constInts(v *ir.Value) ([]int64, bool) {
	if v == nil || !fixed(v) || v.Const.Elems() > maxElems {
		return nil, false
	}
	return v.Ints()
}

// attrInts is n's attribute of that name as a list, nil if there is none; it is
// not known where the caller of a function chooses it.
func attrInts(n *ir.Node, name string) ([]int64, bool) {
	a := n.Attr(name)
	if a == nil {
		return nil, true
	}
	return a.Ints, a.Ref == ""
}

// attrInt is likewise for one integer.
func attrInt(n *ir.Node, name string, def int64) (int64, bool) {
	a := n.Attr(name)
	if a == nil {
		return def, true
	}
	return a.I, a.Ref == ""
}
