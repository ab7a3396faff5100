package backward

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// runKeep computes scores and softmax of all keys in scratch, block by block of queries.
func runKeep[T number](c *op.Call) error {
	p, err := attentionOf(c.Node, c.In)
	if err != nil || p.queries == 0 {
		return err
	}
	q, k, v, mask := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.In[2]), view[T](c.Opt(3))
	y, sums := view[T](c.Out[0]), view[T](output(c, 1))
	zeros := c.Bool("zeros", false)
	each(c, p, false, func(h *head[T]) {
		for _, b := range p.blocks() {
			s := h.compare(b, h.matrix(p.q, q, b.query), h.matrix(p.k, k, b.key), mask, nil)
			for i := range b.queries {
				l := h.softmax(b, s[i*b.keys:][:b.keys], i, zeros)
				if sums != nil {
					sums[h.index*p.queries+b.query+i] = l
				}
			}
			if y != nil {
				h.multiply(gemm.Rows(s, b.keys), h.matrix(p.v, v, b.key),
					gemm.Shape{M: b.queries, N: p.value, K: b.keys}, h.matrix(p.y, y, b.query), false)
			}
		}
	})
	return nil
}

// output is output i, nil if unused.
func output(c *op.Call, i int) *ir.Array {
	if i >= len(c.Out) {
		return nil
	}
	return c.Out[i]
}

// runGrad: with P the softmax, dV = Pᵀ·dY, dS = P·(dY·Vᵀ - D) where D is the sum of dY·Y of each query, dQ = scale·dS·K
// and dK = scale·dSᵀ·Q. Sums over queries are made block after block.
func runGrad[T number](c *op.Call) error {
	p, err := attentionOf(c.Node, c.In)
	if err != nil {
		return err
	}
	q, k, v, mask := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.In[2]), view[T](c.Opt(3))
	y, sums, dy := ir.View[T](c.In[4]), ir.View[T](c.In[5]), ir.View[T](c.In[6])
	dq, dk, dv := view[T](c.Out[0]), view[T](output(c, 1)), view[T](output(c, 2))
	// Without queries there are no blocks, but keys and values still have gradients: zeros.
	if p.queries == 0 {
		clear(dk)
		clear(dv)
		return nil
	}
	each(c, p, true, func(h *head[T]) {
		h.reset(p.k, dk)
		h.reset(p.v, dv)
		for _, b := range p.blocks() {
			h.gradients(b, operands[T]{q, k, v, mask, y, sums, dy}, dq, dk, dv)
		}
	})
	return nil
}

// operands are the inputs of the gradient.
type operands[T number] struct{ q, k, v, mask, y, sums, dy []T }

// gradients computes dq of a block, and adds to dk and dv.
func (h *head[T]) gradients(b blockKeys, x operands[T], dq, dk, dv []T) {
	rows, keys := b.queries, b.keys
	ds := h.scores[1][:rows*keys]
	var slopes []T
	if h.softcap != 0 {
		slopes = h.scores[2][:rows*keys]
	}
	queries, up, out := h.matrix(h.q, x.q, b.query), h.matrix(h.y, x.dy, b.query), h.matrix(h.y, x.y, b.query)
	s := h.compare(b, queries, h.matrix(h.k, x.k, b.key), x.mask, slopes)
	h.multiply(up, h.matrix(h.v, x.v, b.key).T(), gemm.Shape{M: rows, N: keys, K: h.value}, gemm.Rows(ds, keys), false)
	for i := range rows {
		// Σ dY·Y over the elements of a value is Σ P·(dY·Vᵀ) over all keys: no pass over the scores is needed.
		d := T(dot(up.Data[i*up.Row:][:h.value], out.Data[i*out.Row:][:h.value]))
		l := x.sums[h.index*h.queries+b.query+i]
		h.recompute(b, s[i*keys:][:keys], ds[i*keys:][:keys], i, l, d)
	}
	for i, v := range slopes {
		// By the chain rule; elements outside of a query's window are zero already.
		ds[i] *= v
	}
	if dv != nil {
		h.multiply(gemm.Rows(s, keys).T(), up, gemm.Shape{M: keys, N: h.value, K: rows}, h.matrix(h.v, dv, b.key), true)
	}
	if dk != nil {
		h.multiply(gemm.Rows(ds, keys).T(), queries, gemm.Shape{M: keys, N: h.size, K: rows},
			h.matrix(h.k, dk, b.key), true)
	}
	if dq != nil {
		h.multiply(gemm.Rows(ds, keys), h.matrix(h.k, x.k, b.key), gemm.Shape{M: rows, N: h.size, K: keys},
			h.matrix(h.q, dq, b.query), false)
	}
}

// reset clears the head's matrix of a stack, which may be nil, before the first head of a group adds to it.
func (h *head[T]) reset(s stack, data []T) {
	if data == nil || !h.first {
		return
	}
	m := h.matrix(s, data, 0)
	for i := range s.rows() {
		clear(m.Data[i*m.Row:][:s.cols()])
	}
}

// matrix returns the head's matrix of a stack, from a row on.
func (h *head[T]) matrix(s stack, data []T, row int) gemm.Matrix[T] {
	return gemm.Matrix[T]{Data: data[min(s.offset(h.index)+row*s.row(), len(data)):], Row: s.row(), Col: 1}
}

// compare computes the scores of a block: scale·q·kᵀ, with softcap and mask. It stores the derivatives of softcap in
// slopes, which may be nil.
func (h *head[T]) compare(b blockKeys, q, k gemm.Matrix[T], mask, slopes []T) []T {
	s := h.scores[0][:b.queries*b.keys]
	h.multiply(q, k.T(), gemm.Shape{M: b.queries, N: b.keys, K: h.size}, gemm.Rows(s, b.keys), false)
	for i := range b.queries {
		row := s[i*b.keys:][:b.keys]
		scaleRow(row, h.scale)
		if h.softcap != 0 {
			capScores(row, slopes[min(i*b.keys, len(slopes)):min((i+1)*b.keys, len(slopes))], T(h.softcap))
		}
		if h.mask != nil && b.keys > 0 {
			step := int(h.mask.strides[len(h.mask.shape)-1])
			addMask(row, mask[h.mask.offset(h.index)+(b.query+i)*h.mask.row()+b.key*step:], step)
		}
	}
	return s
}

// visible is the range within a row of scores of the keys that query i of a block attends to.
func (h *head[T]) visible(b blockKeys, i int) (from, to int) {
	from, to = h.keyRange(b.query + i)
	from, to = max(from-b.key, 0), min(to-b.key, b.keys)
	// The block has the keys of all its queries; those that this query does not attend to have the weight zero.
	return min(from, max(to, 0)), max(to, 0)
}

// softmax replaces a row of scores by weights and returns their log-sum-exp.
func (h *head[T]) softmax(b blockKeys, row []T, i int, zeros bool) T {
	from, to := h.visible(b, i)
	clear(row[:from])
	clear(row[to:])
	return softmaxKeep(row[from:to], zeros || from == to && h.keys > 0)
}

// recompute replaces a row of scores by weights, and the gradient of the weights by that of the scores.
func (h *head[T]) recompute(b blockKeys, s, ds []T, i int, l, d T) {
	from, to := h.visible(b, i)
	clear(s[:from])
	clear(s[to:])
	clear(ds[:from])
	clear(ds[to:])
	recomputeSoftmax(s[from:to], ds[from:to], l, d, h.scale)
}

// multiply stores a·b in the rows of c, or adds it.
func (h *head[T]) multiply(a, b gemm.Matrix[T], s gemm.Shape, c gemm.Matrix[T], add bool) {
	if s.M == 0 || s.N == 0 {
		return
	}
	switch a := any(a).(type) {
	case gemm.Matrix[float32]:
		to := any(c).(gemm.Matrix[float32])
		gemm.Float(h.pool, s, h.product, gemm.FloatProduct{A: a, B: any(b).(gemm.Matrix[float32]), C: to.Data,
			Stride: to.Row, Accumulate: add})
	case gemm.Matrix[float64]:
		multiplyDoubles(a, any(b).(gemm.Matrix[float64]), s, any(c).(gemm.Matrix[float64]), add)
	}
}

func multiplyDoubles(a, b gemm.Matrix[float64], s gemm.Shape, c gemm.Matrix[float64], add bool) {
	for i := range s.M {
		row := c.Data[i*c.Row:][:s.N]
		if !add {
			clear(row)
		}
		for k := range s.K {
			x := a.Data[i*a.Row+k*a.Col]
			for j := range row {
				row[j] += x * b.Data[k*b.Row+j*b.Col]
			}
		}
	}
}

// scaleRow multiplies scores by a number.
func scaleRow[T number](row []T, scale T) {
	if x, ok := any(row).([]float32); ok {
		kernel.MulScalar(x, x, float32(scale))
		return
	}
	for i := range row {
		row[i] *= scale
	}
}

// addMask adds a mask, with stride step, 0 or 1.
func addMask[T number](row, mask []T, step int) {
	x, ok := any(row).([]float32)
	switch m, _ := any(mask).([]float32); {
	case ok && step == 0:
		kernel.AddScalar(x, x, m[0])
	case ok:
		kernel.Add(x, x, m[:len(x)])
	default:
		for i := range row {
			row[i] += mask[i*step]
		}
	}
}

// softmaxKeep replaces scores by weights and returns their log-sum-exp. With zeros, the weights of a query whose keys
// are all masked are zero, where a plain softmax is NaN.
func softmaxKeep[T number](row []T, zeros bool) T {
	top := T(math.Inf(-1))
	x, single := any(row).([]float32)
	if single {
		top = T(kernel.ReduceMax(x))
	} else {
		for _, v := range row {
			top = max(top, v)
		}
	}
	if zeros && math.IsInf(float64(top), -1) {
		clear(row)
		return T(math.Inf(1)) // exponentials of lower scores are zero
	}
	if single {
		return T(softmaxSingles(x, float32(top)))
	}
	sum := 0.0
	for i, v := range row {
		row[i] = T(math.Exp(float64(v - top)))
		sum += float64(row[i])
	}
	for i := range row {
		row[i] /= T(sum)
	}
	return top + T(math.Log(sum))
}

func softmaxSingles(x []float32, top float32) float64 {
	kernel.SubScalar(x, x, top)
	kernel.Exp(x, x)
	sum := kernel.ReduceSum(x)
	kernel.MulScalar(x, x, float32(1/sum))
	return float64(top) + math.Log(sum)
}

// recomputeSoftmax replaces scores by weights, and the gradient of the weights by that of the scores.
func recomputeSoftmax[T number](s, ds []T, l, d, scale T) {
	if x, ok := any(s).([]float32); ok {
		dx := any(ds).([]float32)
		// exp(s-L) is the weight, normalized: neither the maximum nor the sum of the row is needed again.
		kernel.SubScalar(x, x, float32(l))
		kernel.Exp(x, x)
		kernel.SubScalar(dx, dx, float32(d))
		kernel.Mul(dx, dx, x)
		kernel.MulScalar(dx, dx, float32(scale))
		return
	}
	for i := range s {
		s[i] = T(math.Exp(float64(s[i] - l)))
		ds[i] = s[i] * (ds[i] - d) * scale
	}
}
