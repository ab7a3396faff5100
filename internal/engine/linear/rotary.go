package linear

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// rotaries are ONNX's RotaryEmbedding and com.microsoft's, whose position_ids are the second input, and may be one
// number, the start of the sequence.
func rotaries() []op.Op {
	row := func(id ir.OpID, since int64, ports rotaryPorts) op.Op {
		return op.Op{
			Domain: id.Domain, Type: id.Type, Since: since, InPlace: []int{0},
			Shape: ports.shape, Run: ports.run, Work: ports.work,
		}
	}
	return []op.Op{
		row(ir.OpID{Type: "RotaryEmbedding"}, 23, rotaryPorts{cos: 1, sin: 2, positions: 3}),
		row(ir.OpID{Domain: microsoft, Type: "RotaryEmbedding"}, 1,
			rotaryPorts{positions: 1, cos: 2, sin: 3, microsoft: true}),
	}
}

// rotaryPorts holds the indices of the inputs.
type rotaryPorts struct {
	cos, sin, positions int
	microsoft           bool
}

// A rotation rotates pairs of elements of each vector by angles that depend on its position (Su et al., "RoFormer:
// Enhanced Transformer with Rotary Position Embedding", 2021).
type rotation struct {
	batch, tokens, heads, size int
	from, to                   headLayout
	pairs                      int  // of each vector; the remaining elements are unchanged
	interleaved                bool // pairs are adjacent elements, not those of two halves
}

// rotationOf reads the shapes of the vectors x and of cosines, which have a row per position.
func rotationOf(x *ir.Array, heads, dim int64, cos *ir.Array, interleaved bool) (*rotation, error) {
	r := &rotation{batch: int(x.Shape[0]), interleaved: interleaved}
	var size int64
	if len(x.Shape) == 4 {
		heads, size = x.Shape[1], x.Shape[3]
		r.tokens = int(x.Shape[2])
		r.from = split(int(heads), r.tokens, int(size))
	} else {
		if heads <= 0 || x.Shape[2]%heads != 0 {
			return nil, fmt.Errorf("input X %s does not have num_heads = %d heads", x, heads)
		}
		size, r.tokens = x.Shape[2]/heads, int(x.Shape[1])
		r.from = packed(int(heads), r.tokens, int(size))
	}
	if dim == 0 {
		dim = size
	}
	if dim < 0 || dim > size || dim%2 != 0 {
		return nil, fmt.Errorf("rotary_embedding_dim is %d for vectors of %d elements", dim, size)
	}
	if cos.Shape[len(cos.Shape)-1] != dim/2 {
		return nil, fmt.Errorf("input cos_cache %s does not match %d pairs", cos, dim/2)
	}
	r.to, r.heads, r.size, r.pairs = r.from, int(heads), int(size), int(dim/2)
	return r, nil
}

// of is the rotation of node n for inputs in.
func (p rotaryPorts) of(n *op.Node, in []*ir.Array) (*rotation, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	x, err := op.Arg(in, 0, "X")
	if err != nil {
		return nil, err
	}
	cos, err := op.Arg(in, p.cos, "cos_cache")
	if err != nil {
		return nil, err
	}
	sin, err := op.Arg(in, p.sin, "sin_cache")
	if err != nil {
		return nil, err
	}
	if x.DType != ir.Float && !half(x.DType) || x.DType != cos.DType || cos.String() != sin.String() {
		return nil, fmt.Errorf("inputs X %s, cos_cache %s and sin_cache %s do not match", x, cos, sin)
	}
	ids := op.Opt(in, p.positions)
	if rank := len(x.Shape); rank != 3 && rank != 4 || len(cos.Shape) != 2 && (ids != nil || len(cos.Shape) != 3) {
		return nil, fmt.Errorf("inputs X %s and cos_cache %s have an unsupported number of axes", x, cos)
	}
	heads, dim := n.Int("num_heads", 0), n.Int("rotary_embedding_dim", 0)
	if p.microsoft && heads == 0 && len(x.Shape) == 3 && cos.Shape[1] > 0 {
		heads = x.Shape[2] / (2 * cos.Shape[1])
	}
	r, err := rotationOf(x, heads, dim, cos, n.Bool("interleaved", false))
	if err != nil {
		return nil, err
	}
	return r, p.check(r, ids, cos)
}

// check is an error unless there is a position, or a row of cosines, for each token.
func (p rotaryPorts) check(r *rotation, ids, cos *ir.Array) error {
	if ids == nil {
		if p.microsoft || len(cos.Shape) != 3 || cos.Shape[0] != int64(r.batch) || cos.Shape[1] != int64(r.tokens) {
			return fmt.Errorf("input cos_cache %s does not have a row for each of %d×%d tokens, and position_ids "+
				"is missing", cos, r.batch, r.tokens)
		}
		return nil
	}
	if ids.DType != ir.Int64 {
		return fmt.Errorf("input position_ids is %s, want int64", ids)
	}
	if p.microsoft && len(ids.Shape) == 1 && ids.Shape[0] == 1 {
		return nil
	}
	if len(ids.Shape) != 2 || ids.Shape[0] != int64(r.batch) || ids.Shape[1] != int64(r.tokens) {
		return fmt.Errorf("input position_ids is %s for %d×%d tokens", ids, r.batch, r.tokens)
	}
	return nil
}

func (p rotaryPorts) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := p.of(n, in); err != nil {
		return nil, err
	}
	return []ir.Spec{in[0].Spec()}, nil
}

// work is the memory of float32 copies of 16-bit vectors and caches.
func (p rotaryPorts) work(n *op.Node, in []*ir.Array, _ int) int64 {
	if !half(in[0].DType) {
		return 0
	}
	return floatBytes(in[0]) + floatBytes(in[p.cos]) + floatBytes(in[p.sin])
}

func (p rotaryPorts) run(c *op.Call) error {
	r, err := p.of(c.Node, c.In)
	if err != nil {
		return err
	}
	s := &scratch{mem: c.Work}
	x, y := load[float32](s, c.In[0]), c.Out[0]
	// A 16-bit tensor is rotated in its float32 copy, from which store rounds.
	to := x
	if y.DType == ir.Float {
		to = ir.View[float32](y)
	}
	a := angles{cos: load[float32](s, c.In[p.cos]), sin: load[float32](s, c.In[p.sin]), pairs: r.pairs}
	if a.row, err = rowsOf(r, op.Opt(c.In, p.positions), c.In[p.cos]); err != nil {
		return err
	}
	r.run(c.Pool, to, x, a)
	store(y, to)
	return nil
}

// rowsOf is the row of the caches for each token of all batches.
func rowsOf(r *rotation, ids, cos *ir.Array) (func(token int) int, error) {
	if ids == nil {
		return func(token int) int { return token }, nil
	}
	positions, rows := ir.View[int64](ids), cos.Shape[0]
	if len(ids.Shape) == 1 {
		from := positions[0]
		if r.tokens > 0 && (from < 0 || from > rows-int64(r.tokens)) {
			return nil, fmt.Errorf("%d tokens from position %d on exceed the %d rows of cos_cache", r.tokens, from,
				rows)
		}
		return func(token int) int { return int(from) + token%r.tokens }, nil
	}
	for i, p := range positions {
		if p < 0 || p >= rows {
			return nil, fmt.Errorf("position_ids[%d] is %d, cos_cache has %d rows", i, p, rows)
		}
	}
	return func(token int) int { return int(positions[token]) }, nil
}

// angles are the cosines and sines of each token's angles.
type angles struct {
	cos, sin []float32
	pairs    int
	row      func(token int) int // counted through all batches
}

func (a angles) of(token int) (cos, sin []float32) {
	at := a.row(token) * a.pairs
	return a.cos[at:][:a.pairs], a.sin[at:][:a.pairs]
}

// run rotates all vectors of x; y may be x if their layouts are equal.
func (r *rotation) run(p *op.Pool, y, x []float32, a angles) {
	turn := rotateHalves
	if r.interleaved {
		turn = rotateAdjacent
	}
	grain := max(1, (1<<13)/max(r.heads*r.size, 1))
	p.Rows(r.batch*r.tokens, grain, func(from, to int) {
		for t := from; t < to; t++ {
			cos, sin := a.of(t)
			for h := range r.heads {
				src := x[r.from.at(t/r.tokens, h)+t%r.tokens*r.from.token:][:r.size]
				dst := y[r.to.at(t/r.tokens, h)+t%r.tokens*r.to.token:][:r.size]
				turn(dst, src, cos, sin)
				copy(dst[2*r.pairs:], src[2*r.pairs:])
			}
		}
	})
}

func rotateHalves(y, x, cos, sin []float32) {
	n := len(cos)
	x1, x2, y1, y2, sin := x[:n], x[n:2*n], y[:n], y[n:2*n], sin[:n]
	for i, c := range cos {
		// Both are read before either is written, as y may be x.
		a, b, s := x1[i], x2[i], sin[i]
		// Conversions round the products: arm64 would fuse them with the additions.
		y1[i] = float32(c*a) - float32(s*b)
		y2[i] = float32(s*a) + float32(c*b)
	}
}

func rotateAdjacent(y, x, cos, sin []float32) {
	for i, c := range cos {
		a, b, s := x[2*i], x[2*i+1], sin[i]
		y[2*i] = float32(c*a) - float32(s*b)
		y[2*i+1] = float32(s*a) + float32(c*b)
	}
}
