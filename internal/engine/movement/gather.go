package movement

import (
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// gathers read at the positions given by an input. Work holds these positions.
func gathers() []op.Op {
	return []op.Op{
		{Type: "Gather", Since: 1, Shape: gatherShape, Run: runGather, Work: wordEach(1), Rows: gathersRows,
			Pack: packGather, Packs: true, Decodes: decodesGather},
		{Type: "GatherElements", Since: 11, Shape: gatherElementsShape, Run: runGatherElements, Work: wordEach(1)},
		{Type: "GatherND", Since: 11, Shape: gatherNDShape, Run: runGatherND, Work: wordEach(1)},
	}
}

// wordEach is Work for one int64 per element of input i.
func wordEach(i int) func(*op.Node, []*ir.Array, int) int64 {
	return func(_ *op.Node, in []*ir.Array, _ int) int64 { return 8 * in[i].Elems() }
}

// words is the scratch memory as integers.
func words(c *op.Call) []int64 {
	return ir.View[int64](&ir.Array{DType: ir.Int64, Data: c.Work})
}

// indices is input i, which must hold integers of the types that ONNX allows for indices.
func indices(in []*ir.Array, i int) (*ir.Array, error) {
	a, err := op.Arg(in, i, "indices")
	if err != nil {
		return nil, err
	}
	if a.DType != ir.Int32 && a.DType != ir.Int64 {
		return nil, fmt.Errorf("indices are %s, want int32 or int64", a.DType)
	}
	return a, nil
}

// gathered are the data and the indices of an operator that gathers.
func gathered(in []*ir.Array) (data, at *ir.Array, err error) {
	if data, err = op.Arg(in, 0, "data"); err != nil {
		return nil, nil, err
	}
	at, err = indices(in, 1)
	return data, at, err
}

// positions are all indices, made non-negative for an axis of that size, in Work.
func positions(c *op.Call, a *ir.Array, size int64) ([]int64, error) {
	out := words(c)[:a.Elems()]
	if a.DType == ir.Int32 {
		return out, countedFrom(out, ir.View[int32](a), size)
	}
	return out, countedFrom(out, ir.View[int64](a), size)
}

func countedFrom[T int32 | int64](out []int64, indices []T, size int64) error {
	for i, x := range indices {
		at, ok := fromStart(int64(x), size)
		if !ok {
			return outOfRange(int64(x), i, size)
		}
		out[i] = at
	}
	return nil
}

// fromStart is an index that counts from the end of an axis of that size if it is negative. It reports whether the
// index is in range.
func fromStart(at, size int64) (int64, bool) {
	if at < 0 {
		at += size
	}
	// One comparison for both bounds: a negative number is a large unsigned one.
	return at, uint64(at) < uint64(size)
}

func outOfRange(index int64, position int, size int64) error {
	return fmt.Errorf("index %d at position %d is out of range for an axis of %d", index, position, size)
}

func gatherShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	data, at, err := gathered(in)
	if err != nil {
		return nil, err
	}
	axis, err := op.Axis(n.Int("axis", 0), len(data.Shape))
	if err != nil {
		return nil, err
	}
	return op.One(data.DType, slices.Concat(data.Shape[:axis], at.Shape, data.Shape[axis+1:])...)
}

func runGather(c *op.Call) error {
	data, dst := c.In[0], c.Out[0]
	axis, err := op.Axis(c.Int("axis", 0), len(data.Shape))
	if err != nil {
		return err
	}
	at, err := positions(c, c.In[1], data.Shape[axis])
	if err != nil || dst.Elems() == 0 {
		return err
	}
	// A streamed table: only these rows are read from the file.
	if c.Rows != nil {
		return readRows(c.Rows, dst.Data, at)
	}
	inner := op.Product(data.Shape[axis+1:])
	if c.Packed != nil {
		decodeRows(c, at, int(inner))
		return nil
	}
	for i := range at {
		at[i] *= inner
	}
	r := &runs{n: len(at), size: int(inner), src: at, outer: int(op.Product(data.Shape[:axis]))}
	r.srcStep = int(data.Shape[axis] * inner)
	r.dstStep = len(at) * int(inner)
	move(c.Pool, r, dst, data)
	return nil
}

// gathersRows reports whether rows of whole bytes are gathered, as in an embedding lookup.
func gathersRows(n *op.Node, table *ir.Array) bool {
	return n.Int("axis", 0) == 0 && len(table.Shape) > 0 && table.DType != ir.String &&
		op.Product(table.Shape[1:])*table.DType.Bits()%8 == 0
}

// readRows reads the rows at these positions. Rows that are adjacent in source and destination are read at once.
func readRows(r io.ReaderAt, dst []byte, at []int64) error {
	size := len(dst) / len(at)
	for from := 0; from < len(at); {
		to := from + 1
		// One read for adjacent rows.
		for to < len(at) && at[to] == at[to-1]+1 {
			to++
		}
		if err := ir.ReadFull(r, dst[from*size:to*size], at[from]*int64(size)); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func gatherElementsShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	data, at, err := gathered(in)
	if err != nil {
		return nil, err
	}
	if _, err := alongAxis(n, data.Shape, at.Shape); err != nil {
		return nil, err
	}
	return op.One(data.DType, at.Shape...)
}

// alongAxis is the checked axis of an operator whose indices have data's shape up to that axis.
func alongAxis(n *op.Node, data, at []int64) (int, error) {
	axis, err := op.Axis(n.Int("axis", 0), len(data))
	if err != nil {
		return 0, err
	}
	if len(at) != len(data) {
		return 0, fmt.Errorf("indices of shape %v for data of shape %v: the ranks differ", at, data)
	}
	for i := range at {
		if i != axis && at[i] > data[i] {
			return 0, fmt.Errorf("indices of shape %v exceed data of shape %v at axis %d", at, data, i)
		}
	}
	return axis, nil
}

func runGatherElements(c *op.Call) error {
	data, dst := c.In[0], c.Out[0]
	at, err := elementPlaces(c, data.Shape, c.In[1])
	if err != nil {
		return err
	}
	move(c.Pool, &runs{n: len(at), size: 1, src: at, outer: 1}, dst, data)
	return nil
}

// elementPlaces are, in Work, the offsets in data that the indices refer to: along the axis, while the other
// coordinates are those of the index.
func elementPlaces(c *op.Call, data []int64, at *ir.Array) ([]int64, error) {
	axis, err := alongAxis(c.Node, data, at.Shape)
	if err != nil {
		return nil, err
	}
	places, err := positions(c, at, data[axis])
	if err != nil || len(places) == 0 {
		return nil, err
	}
	own := op.Strides(data)
	step := own[axis]
	// Along the axis, the index replaces the coordinate.
	own[axis] = 0
	last := len(own) - 1
	// The offsets of the other coordinates, row by row; the walk has no stride in the destination.
	w := newWalk(newStrided(at.Shape[:last], make([]int64, last), own).axes, 0, 0, 0)
	for row := range slices.Chunk(places, int(at.Shape[last])) {
		for j := range row {
			row[j] = row[j]*step + int64(w.src) + int64(j)*own[last]
		}
		w.next()
	}
	return places, nil
}

func gatherNDShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	data, at, err := gathered(in)
	if err != nil {
		return nil, err
	}
	batch, width, err := tuples(data.Shape, at.Shape, n.Int("batch_dims", 0))
	if err != nil {
		return nil, err
	}
	return op.One(data.DType, slices.Concat(at.Shape[:len(at.Shape)-1], data.Shape[batch+width:])...)
}

// tuples checks indices whose last axis holds coordinates of data after the first batch axes, and returns the number of
// coordinates.
func tuples(data, at []int64, batch int64) (axes, width int, err error) {
	if batch < 0 || batch >= int64(min(len(data), len(at))) {
		return 0, 0, fmt.Errorf("batch_dims is %d for data of shape %v and indices of shape %v", batch, data, at)
	}
	b := int(batch)
	if !slices.Equal(data[:b], at[:b]) {
		return 0, 0, fmt.Errorf("data of shape %v and indices of shape %v differ in the first %d axes", data, at, b)
	}
	k := at[len(at)-1]
	if k < 1 || k > int64(len(data)-b) {
		return 0, 0, fmt.Errorf("indices of shape %v hold %d coordinates for data of shape %v", at, k, data)
	}
	return b, int(k), nil
}

func runGatherND(c *op.Call) error {
	data, dst := c.In[0], c.Out[0]
	at, size, err := tuplePlaces(c, data.Shape, c.In[1], c.Int("batch_dims", 0))
	if err != nil {
		return err
	}
	move(c.Pool, &runs{n: len(at), size: size, src: at, outer: 1}, dst, data)
	return nil
}

// tuplePlaces are, in Work, the offsets in data that the tuples refer to, and the size of the slices there.
func tuplePlaces(c *op.Call, data []int64, at *ir.Array, batchDims int64) ([]int64, int, error) {
	batch, width, err := tuples(data, at.Shape, batchDims)
	if err != nil || at.Elems() == 0 {
		return nil, 0, err
	}
	out := words(c)[:at.Elems()/int64(width)]
	sizes, strides := data[batch:batch+width], op.Strides(data)[batch:]
	if at.DType == ir.Int32 {
		err = countedTuples(out, ir.View[int32](at), sizes, strides)
	} else {
		err = countedTuples(out, ir.View[int64](at), sizes, strides)
	}
	each := len(out) / int(op.Product(data[:batch])) // tuples of a batch
	step := op.Product(data[batch:])
	for i := each; i < len(out); i++ {
		out[i] += int64(i/each) * step
	}
	return out, int(op.Product(data[batch+width:])), err
}

func countedTuples[T int32 | int64](out []int64, tuples []T, sizes, strides []int64) error {
	for i := range out {
		place := int64(0)
		for j, size := range sizes {
			x := int64(tuples[i*len(sizes)+j])
			at, ok := fromStart(x, size)
			if !ok {
				return outOfRange(x, i*len(sizes)+j, size)
			}
			place += at * strides[j]
		}
		out[i] = place
	}
	return nil
}
