package opset

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// ints are the elements of v, all of which are integers: of a constant, or computed from the shapes of the inputs.
func (f *inference) ints(v *ir.Value) ([]int64, bool) {
	if is, ok := constInts(v); ok || f.sizes == nil {
		return is, ok
	}
	xs, ok := f.floats(v)
	is := make([]int64, len(xs))
	for i, x := range xs {
		if x != math.Trunc(x) {
			return nil, false // also NaN
		}
		is[i] = int64(min(max(x, math.MinInt64), 1<<62))
	}
	return is, ok
}

// floats are the elements of a small tensor that is computed from the shapes of the inputs; NaN for unknown ones.
func (f *inference) floats(v *ir.Value) ([]float64, bool) {
	if v == nil {
		return nil, false
	}
	if v.Const != nil {
		return constFloats(v)
	}
	if xs, ok := f.values[v]; ok {
		return xs, xs != nil
	}
	if isCondition(v) {
		return []float64{1}, true
	}
	n := v.Producer()
	if n == nil || len(n.Outputs) != 1 || !f.visit() {
		return nil, false
	}
	defer f.leave()
	f.values[v] = nil
	rule := valueRuleOf(n)
	if rule == nil {
		return nil, false
	}
	xs, ok := rule(f, n)
	if !ok || len(xs) > maxElems {
		return nil, false
	}
	f.values[v] = append([]float64{}, xs...)
	return xs, true
}

// constFloats are the elements of a small constant.
func constFloats(v *ir.Value) ([]float64, bool) {
	if !fixed(v) || v.Const.Elems() > maxElems {
		return nil, false
	}
	b, ok := v.Const.Stored()
	if !ok {
		return nil, false
	}
	xs := []float64{}
	switch v.Const.DType {
	case ir.Float:
		for ; len(b) >= 4; b = b[4:] {
			xs = append(xs, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	case ir.Bool:
		for _, x := range b {
			xs = append(xs, float64(min(x, 1)))
		}
	default:
		is, ok := ir.ParseInts(v.Const.DType, b)
		for _, i := range is {
			xs = append(xs, float64(i))
		}
		return xs, ok
	}
	return xs, true
}

// A valueRule gives the elements of n's output.
type valueRule func(f *inference, n *ir.Node) ([]float64, bool)

// valueRuleOf is nil for operators that do not occur in the computation of shapes.
func valueRuleOf(n *ir.Node) valueRule {
	name := operator.Name(n.Op)
	if operator.Of(n).Move == operator.View || name == "Cast" {
		return func(f *inference, n *ir.Node) ([]float64, bool) { return f.floats(n.Input(0)) }
	}
	if compute := arithmeticOf(name); compute != nil {
		return elementwise(compute)
	}
	switch name {
	case "Div":
		return quotients
	case "Shape":
		return shapeValues
	case "Size":
		return sizeValue
	case "Gather":
		return gatherValues
	case "Concat":
		return concatValues
	case "Slice":
		return sliceValues
	case "Transpose":
		return transposeValues
	case "ConstantOfShape":
		return filledValues
	case "Range":
		return rangeValues
	case "Where":
		return whereValues
	case "ReduceProd":
		return prodValue
	}
	return nil
}

// arithmeticOf computes an element of one or two operands, b being NaN for one; nil for other operators.
func arithmeticOf(name string) func(a, b float64) float64 {
	truth := func(t bool) float64 {
		if t {
			return 1
		}
		return 0
	}
	switch name {
	case "Add":
		return func(a, b float64) float64 { return a + b }
	case "Sub":
		return func(a, b float64) float64 { return a - b }
	case "Mul":
		return func(a, b float64) float64 { return a * b }
	case "Max":
		return math.Max
	case "Min":
		return math.Min
	case "Neg":
		return func(a, _ float64) float64 { return -a }
	case "Floor":
		return func(a, _ float64) float64 { return math.Floor(a) }
	case "Ceil":
		return func(a, _ float64) float64 { return math.Ceil(a) }
	case "Sqrt":
		return func(a, _ float64) float64 { return math.Sqrt(a) }
	case "Mod":
		return func(a, b float64) float64 { return a - b*math.Floor(a/b) }
	case "Equal":
		return func(a, b float64) float64 {
			if math.IsNaN(a) || math.IsNaN(b) {
				return math.NaN()
			}
			return truth(a == b)
		}
	}
	return nil
}

// elementwise broadcasts operands of one element and of any number.
func elementwise(compute func(a, b float64) float64) valueRule {
	return func(f *inference, n *ir.Node) ([]float64, bool) {
		a, ok := f.floats(n.Input(0))
		b, ok2 := []float64{math.NaN()}, true
		if len(n.Inputs()) > 1 {
			b, ok2 = f.floats(n.Input(1))
		}
		if !ok || !ok2 || len(n.Inputs()) > 2 {
			return nil, false
		}
		return broadcastValues(a, b, compute)
	}
}

// quotients are truncated where both operands are integers.
func quotients(f *inference, n *ir.Node) ([]float64, bool) {
	whole := f.elem(n.Outputs[0]) != ir.Float
	return elementwise(func(a, b float64) float64 {
		if whole {
			return math.Trunc(a / b)
		}
		return a / b
	})(f, n)
}

func broadcastValues(a, b []float64, compute func(a, b float64) float64) ([]float64, bool) {
	if len(a) != len(b) && len(a) != 1 && len(b) != 1 || len(a)*len(b) == 0 {
		return nil, false
	}
	out := make([]float64, max(len(a), len(b)))
	for i := range out {
		out[i] = compute(a[min(i, len(a)-1)], b[min(i, len(b)-1)])
	}
	return out, true
}

func shapeValues(f *inference, n *ir.Node) ([]float64, bool) {
	s, ok := f.shape(n.Input(0))
	if !ok {
		return nil, false
	}
	from, to := clampAxis(n.Int("start", 0), len(s)), clampAxis(n.Int("end", int64(len(s))), len(s))
	xs := []float64{}
	for i := from; i < to; i++ {
		xs = append(xs, sizeOrNaN(s[i]))
	}
	return xs, true
}

func clampAxis(a int64, rank int) int {
	if a < 0 {
		a += int64(rank)
	}
	return int(min(max(a, 0), int64(rank)))
}

func sizeOrNaN(d ir.Dim) float64 {
	if !d.Known() {
		return math.NaN()
	}
	return float64(d.N)
}

func sizeValue(f *inference, n *ir.Node) ([]float64, bool) {
	s, ok := f.shape(n.Input(0))
	size, ok2 := product(s)
	return []float64{float64(size)}, ok && ok2
}

// isVector reports whether v has one axis.
func (f *inference) isVector(v *ir.Value) bool {
	s, ok := f.shape(v)
	return ok && len(s) == 1
}

func gatherValues(f *inference, n *ir.Node) ([]float64, bool) {
	xs, ok := f.floats(n.Input(0))
	at, ok2 := f.ints(n.Input(1))
	if !ok || !ok2 || !f.isVector(n.Input(0)) {
		return nil, false
	}
	out := []float64{}
	for _, i := range at {
		k, ok := axis(i, len(xs))
		if !ok {
			return nil, false
		}
		out = append(out, xs[k])
	}
	return out, true
}

func concatValues(f *inference, n *ir.Node) ([]float64, bool) {
	var out []float64
	for _, v := range n.Inputs() {
		xs, ok := f.floats(v)
		if !ok || !f.isVector(v) {
			return nil, false
		}
		out = append(out, xs...)
	}
	return out, true
}

// sliceValues and transposeValues occur in the pads that PyTorch exports: pairs in reverse order.
func sliceValues(f *inference, n *ir.Node) ([]float64, bool) {
	s, ok := f.shape(n.Input(0))
	starts, ok2 := f.listOf(n, "starts", 1)
	axes, ok3 := f.listOf(n, "axes", 3)
	steps, ok4 := f.listOf(n, "steps", 4)
	if !ok || !ok2 || !ok3 || !ok4 {
		return nil, false
	}
	from, by := make([]int64, len(s)), slices.Repeat([]int64{1}, len(s))
	for i, start := range starts {
		a := int64(i)
		if i < len(axes) {
			a = axes[i]
		}
		at, inside := axis(a, len(s))
		if !inside {
			return nil, false
		}
		if i < len(steps) {
			by[at] = steps[i]
		}
		if start < 0 {
			start += s[at].N
		}
		from[at] = min(max(start, 0), s[at].N-max(0, -sign(by[at])))
	}
	return f.moved(n, func(at []int64) []int64 {
		for i := range at {
			at[i] = from[i] + at[i]*by[i]
		}
		return at
	})
}

func sign(x int64) int64 {
	if x < 0 {
		return -1
	}
	return 1
}

func transposeValues(f *inference, n *ir.Node) ([]float64, bool) {
	perm, ok := attrInts(n, "perm")
	if !ok || perm == nil {
		return nil, false
	}
	return f.moved(n, func(at []int64) []int64 {
		to := make([]int64, len(at))
		for i, p := range perm {
			if p >= 0 && int(p) < len(to) {
				to[p] = at[i]
			}
		}
		return to
	})
}

// moved are elements of the first input, at the position that source gives for each position of the output.
func (f *inference) moved(n *ir.Node, source func(at []int64) []int64) ([]float64, bool) {
	xs, ok := f.floats(n.Input(0))
	in, ok2 := f.shape(n.Input(0))
	out, ok3 := f.shape(n.Outputs[0])
	have, ok4 := product(in)
	count, ok5 := product(out)
	if !ok || !ok2 || !ok3 || !ok4 || !ok5 || have != int64(len(xs)) || len(in) != len(out) || count > maxElems {
		return nil, false
	}
	ys := make([]float64, count)
	for k := range ys {
		at, rest := make([]int64, len(out)), int64(k)
		for i := len(out) - 1; i >= 0; i-- {
			at[i], rest = rest%out[i].N, rest/out[i].N
		}
		flat := int64(0)
		for i, x := range source(at) {
			flat = flat*in[i].N + x
		}
		if flat < 0 || flat >= have {
			return nil, false
		}
		ys[k] = xs[flat]
	}
	return ys, true
}

func filledValues(f *inference, n *ir.Node) ([]float64, bool) {
	shape, ok := f.ints(n.Input(0))
	count, ok2 := product(dims(shape))
	fill := 0.0
	if a := n.Attr("value"); a != nil && a.Tensor != nil {
		b, stored := a.Tensor.Stored()
		is, parsed := ir.ParseInts(a.Tensor.DType, b)
		if !stored || !parsed || len(is) != 1 {
			return nil, false
		}
		fill = float64(is[0])
	}
	if !ok || !ok2 || count > maxElems {
		return nil, false
	}
	return slices.Repeat([]float64{fill}, int(count)), true
}

func rangeValues(f *inference, n *ir.Node) ([]float64, bool) {
	from, step, count, ok := f.rangeOf(n)
	if !ok || count > maxElems {
		return nil, false
	}
	out := make([]float64, int(count))
	for i := range out {
		out[i] = from + float64(i)*step
	}
	return out, true
}

// rangeOf are the first element of Range's output, the step and the number of elements.
func (f *inference) rangeOf(n *ir.Node) (from, step, count float64, ok bool) {
	var x [3]float64
	for i := range x {
		xs, ok := f.floats(n.Input(i))
		if !ok || len(xs) != 1 {
			return 0, 0, 0, false
		}
		x[i] = xs[0]
	}
	count = max(0, math.Ceil((x[1]-x[0])/x[2]))
	return x[0], x[2], count, count < 1<<40 // not NaN
}

func whereValues(f *inference, n *ir.Node) ([]float64, bool) {
	is, ok := f.floats(n.Input(0))
	a, ok2 := f.floats(n.Input(1))
	b, ok3 := f.floats(n.Input(2))
	size := max(len(is), len(a), len(b))
	if !ok || !ok2 || !ok3 || len(is)*len(a)*len(b) == 0 {
		return nil, false
	}
	out := make([]float64, size)
	for i := range out {
		switch at := func(xs []float64) float64 { return xs[min(i, len(xs)-1)] }; at(is) {
		case 0:
			out[i] = at(b)
		case 1:
			out[i] = at(a)
		default:
			out[i] = math.NaN()
		}
	}
	return out, true
}

func prodValue(f *inference, n *ir.Node) ([]float64, bool) {
	xs, ok := f.floats(n.Input(0))
	p := 1.0
	for _, x := range xs {
		p *= x
	}
	return []float64{p}, ok && f.isVector(n.Input(0))
}
