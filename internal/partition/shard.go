package partition

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A sharder rewrites a reading of a model to the part of one rank.
type sharder struct {
	*division
	rank, ranks int64
	origin      map[*ir.Value]*ir.Value // of parts of constants: the constant in the whole model
}

// bounds is the range of an axis or block of that length on the rank: parts that cannot be divided evenly are given to
// the first ranks.
func (s *sharder) bounds(length int64) (from, to int64) {
	parts := s.parts()
	// Of 10 parts 4 ranks have 3, 3, 2 and 2. A part of this axis is length/parts elements long.
	at := func(rank int64) int64 { return (rank*(parts/s.ranks) + min(rank, parts%s.ranks)) * (length / parts) }
	return at(s.rank), at(s.rank + 1)
}

// length is the length of an axis on the rank.
func (s *sharder) length(of split) (n int64) {
	for _, b := range of.blocks {
		from, to := s.bounds(b)
		n += to - from
	}
	return n
}

// indices are the elements of a divided axis on the rank.
func (s *sharder) indices(of split) []int64 {
	var list []int64
	start := int64(0)
	for _, b := range of.blocks {
		from, to := s.bounds(b)
		for i := from; i < to; i++ {
			list = append(list, start+i)
		}
		start += b
	}
	return list
}

// apply rewrites the graph: weights and other inputs of divided nodes become parts, and sizes in attributes and shapes
// those of the rank. The bias of the row-parallel product is added on rank 0 only.
func (s *sharder) apply() {
	s.readParts(s.row)
	// The outputs of all ranks are summed, which would add it once for each of them.
	if s.rank > 0 && s.row.Input(2) != nil {
		s.dropBias()
	}
	for _, n := range slices.Backward(s.nodes) {
		s.readParts(n)
		s.resize(n)
	}
	for _, n := range slices.Backward(s.nodes) {
		for _, v := range n.Outputs {
			if of, divided := s.values[v]; divided {
				s.restoreShapes(v, of)
				v.Type = s.typeOf(v, of)
			}
		}
	}
}

// dropBias removes the bias of the row-parallel product, or makes it 0 where it is required (Gemm before opset 11).
func (s *sharder) dropBias() {
	g, bias := s.row.Graph(), s.row.Input(2)
	s.row.TrimInputs(2)
	if t := s.types.declaration(s.row.Outputs[0]); g.Opset("") < 11 && t != nil {
		zero := &ir.Tensor{Spec: ir.Spec{DType: t.Elem, Shape: []int64{1}}, Source: make(ir.Mem, t.Elem.Bits()/8)}
		s.row.SetInput(2, g.AddConst(bias.Name, zero))
	}
}

// readParts replaces the inputs of n that it reads divided, unless their producers compute parts.
func (s *sharder) readParts(n *ir.Node) {
	for i, of := range s.inputSplits[n] {
		v := n.Input(i)
		if v == nil || len(of.blocks) == 0 {
			continue
		}
		if _, divided := s.values[v]; divided {
			continue
		}
		n.SetInput(i, s.part(n, v, of))
	}
}

// part is the part of a whole value: a lazy tensor of a constant, and slices of other values.
func (s *sharder) part(n *ir.Node, v *ir.Value, of split) *ir.Value {
	if v.Const != nil && v.Const.DType.Bits() >= 8 {
		indices := make([][]int64, len(v.Const.Shape))
		indices[of.axis] = s.indices(of)
		t := ir.IndexSelect("shard", v.Const, indices)
		// Others read the whole constant, such as a tied embedding.
		if len(v.Uses()) > 1 {
			part := v.Graph().AddConst(v.Name, t)
			s.origin[part] = v
			return part
		}
		v.SetConst(t)
		v.Type = s.typeOf(v, of)
		return v
	}
	g := n.Graph()
	var blocks []*ir.Value
	start := int64(0)
	for _, b := range of.blocks {
		from, to := s.bounds(b)
		block := s.sliced(n, v, int64(of.axis), start+from, start+to)
		block.Type = s.typeOf(v, split{of.axis, []int64{b}})
		blocks = append(blocks, block)
		start += b
	}
	if len(blocks) == 1 {
		return blocks[0]
	}
	packed := g.Insert(n, "Concat", blocks, ir.IntAttr("axis", int64(of.axis)))
	packed.Type = s.typeOf(v, of)
	return packed
}

// sliced inserts a Slice before n.
func (s *sharder) sliced(n *ir.Node, v *ir.Value, axis, from, to int64) *ir.Value {
	g := n.Graph()
	if g.Opset("") < 10 {
		return g.Insert(
			n,
			"Slice",
			[]*ir.Value{v},
			ir.IntsAttr("starts", from),
			ir.IntsAttr("ends", to),
			ir.IntsAttr("axes", axis),
		)
	}
	return g.Insert(n, "Slice", []*ir.Value{v, integers(g, from), integers(g, to), integers(g, axis)})
}

func integers(g *ir.Graph, is ...int64) *ir.Value {
	return g.AddConst(
		"shard",
		&ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}}, Source: ir.Ints(is...)},
	)
}

// typeOf is the type of a value that is divided, nil if it is unknown.
func (s *sharder) typeOf(v *ir.Value, of split) *ir.Type {
	t := s.types.declaration(v)
	if t == nil {
		return nil
	}
	dims := slices.Clone(t.Shape)
	dims[of.axis] = ir.Dim{N: s.length(of)}
	return &ir.Type{Elem: t.Elem, Shape: dims}
}

// headCounts are the attributes with numbers of heads.
var headCounts = []string{"num_heads", "kv_num_heads", "q_num_heads"}

// resizers replace sizes in inputs of nodes by those of the rank.
var resizers = map[string]func(*sharder, *ir.Node){
	"Expand":  (*sharder).resizeShape,
	"Reshape": (*sharder).resizeShape,
	"Split":   (*sharder).resizeSplit,
}

// resize replaces sizes in attributes and inputs of n by those of the rank.
func (s *sharder) resize(n *ir.Node) {
	if change := resizers[operator.Name(n.Op)]; change != nil {
		change(s, n)
	}
	for _, name := range headCounts {
		if heads := n.Int(name, 0); heads > 0 {
			from, to := s.bounds(heads)
			n.SetAttr(ir.IntAttr(name, to-from))
		}
	}
}

func (s *sharder) resizeShape(n *ir.Node) {
	of := s.values[n.Outputs[0]]
	n.SetInput(1, s.withLength(n, n.Input(1), of.axis, s.length(of)))
}

// withLength is a shape with another length of one axis.
func (s *sharder) withLength(n *ir.Node, shape *ir.Value, axis int, length int64) *ir.Value {
	g := n.Graph()
	if is, ok := shape.Ints(); ok {
		is = slices.Clone(is)
		at := axis - (s.division.rank(n.Outputs[0]) - len(is)) // Expand's shape counts from the last axis
		// A missing axis of Expand is broadcast, and -1 is inferred: both follow the part by themselves.
		if at >= 0 && is[at] != -1 {
			is[at] = length
		}
		return integers(g, is...)
	}
	// The shape is computed at run time: multiplied by 0 at the axis and 1 elsewhere, plus the length at the axis.
	keep, add := slices.Repeat([]int64{1}, s.division.rank(n.Outputs[0])), make([]int64, s.division.rank(n.Outputs[0]))
	keep[axis], add[axis] = 0, length
	return replaceLength(n, shape, keep, add)
}

// replaceLength inserts shape·keep + add before n.
func replaceLength(n *ir.Node, shape *ir.Value, keep, add []int64) *ir.Value {
	g := n.Graph()
	kept := g.Insert(n, "Mul", []*ir.Value{shape, integers(g, keep...)})
	sum := g.Insert(n, "Add", []*ir.Value{kept, integers(g, add...)})
	kept.Type = &ir.Type{Elem: ir.Int64, Shape: []ir.Dim{{N: int64(len(keep))}}}
	sum.Type = kept.Type
	return sum
}

// resizeSplit states the lengths of the outputs on the rank.
func (s *sharder) resizeSplit(n *ir.Node) {
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += int64(s.division.rank(n.Input(0)))
	}
	// Another axis is divided: the lengths along that of Split are those of the whole.
	if int64(s.inputSplits[n][0].axis) != axis {
		return
	}
	var lengths []int64
	for _, v := range n.Outputs {
		lengths = append(lengths, s.length(s.values[v]))
	}
	// It would divide the axis of the rank in equal parts, and the parts of the rank need not be equal.
	n.RemoveAttr("num_outputs")
	if n.Graph().Opset("") < 13 {
		n.SetAttr(ir.IntsAttr("split", lengths...))
		return
	}
	n.SetInput(1, integers(n.Graph(), lengths...))
}

// restoreShapes lets nodes that read the shape of v compute that of the whole value.
func (s *sharder) restoreShapes(v *ir.Value, of split) {
	for _, u := range slices.Clone(v.Uses()) {
		if u.Node == nil || !u.Node.Op.Is("Shape") {
			continue
		}
		n := u.Node
		out, rank := n.Outputs[0], int64(s.division.rank(v))
		start, end := clamped(n.Int("start", 0), rank), clamped(n.Int("end", rank), rank)
		at := int64(of.axis) - start
		if at < 0 || int64(of.axis) >= end {
			continue
		}
		keep, add := slices.Repeat([]int64{1}, int(end-start)), make([]int64, end-start)
		// What is computed from shapes, such as positions and masks, is that of the whole value on each rank.
		keep[at], add[at] = 0, of.length()
		local := n.Graph().NewValue("t")
		n.SetOutputs(local)
		whole := n.Graph().Insert(n.Next(), "Mul", []*ir.Value{local, integers(n.Graph(), keep...)})
		sum := n.Graph().NewNode(ir.OpID{Type: "Add"}, []*ir.Value{whole, integers(n.Graph(), add...)})
		sum.SetOutputs(out)
		if next := whole.Producer().Next(); next != nil {
			n.Graph().InsertBefore(next, sum)
		} else {
			n.Graph().Append(sum)
		}
	}
}

// clamped is an index from the start, at most n.
func clamped(i, n int64) int64 {
	if i < 0 {
		i += n
	}
	return min(max(0, i), n)
}
