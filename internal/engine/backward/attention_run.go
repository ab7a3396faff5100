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
	each(c, p, 1, func(h *head[T]) {
		h.blocks(func(from, rows int) {
			s := h.scores[0][:rows*p.keys]
			h.compare(s, h.matrix(p.q, q, from), h.matrix(p.k, k, 0), mask, from, rows)
			for i := range rows {
				l := softmaxKeep(s[i*p.keys:][:p.keys], c.Bool("zeros", false))
				if sums != nil {
					sums[h.index*p.queries+from+i] = l
				}
			}
			if y != nil {
				h.multiply(gemm.Rows(s, p.keys), h.matrix(p.v, v, 0), gemm.Shape{M: rows, N: p.value, K: p.keys}, h.matrix(p.y, y, from), false)
			}
		})
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
	if p.queries == 0 {
		clear(dk)
		clear(dv)
		return nil
	}
	each(c, p, 2, func(h *head[T]) {
		keys, vals := h.matrix(p.k, k, 0), h.matrix(p.v, v, 0)
		h.blocks(func(from, rows int) {
			s, ds := h.scores[0][:rows*p.keys], h.scores[1][:rows*p.keys]
			queries, up := h.matrix(p.q, q, from), h.matrix(p.y, dy, from)
			h.compare(s, queries, keys, mask, from, rows)
			h.multiply(up, vals.T(), gemm.Shape{M: rows, N: p.keys, K: p.value}, gemm.Rows(ds, p.keys), false)
			out := h.matrix(p.y, y, from)
			for i := range rows {
				d := T(dot(up.Data[i*up.Row:][:p.value], out.Data[i*out.Row:][:p.value]))
				recomputeSoftmax(s[i*p.keys:][:p.keys], ds[i*p.keys:][:p.keys], sums[h.index*p.queries+from+i], d, h.scale)
			}
			if dv != nil {
				h.multiply(gemm.Rows(s, p.keys).T(), up, gemm.Shape{M: p.keys, N: p.value, K: rows}, h.matrix(p.v, dv, 0), from > 0)
			}
			if dk != nil {
				h.multiply(gemm.Rows(ds, p.keys).T(), queries, gemm.Shape{M: p.keys, N: p.size, K: rows}, h.matrix(p.k, dk, 0), from > 0)
			}
			if dq != nil {
				h.multiply(gemm.Rows(ds, p.keys), keys, gemm.Shape{M: rows, N: p.size, K: p.keys}, h.matrix(p.q, dq, from), false)
			}
		})
	})
	return nil
}

func (h *head[T]) blocks(f func(from, rows int)) {
	for from, step := 0, h.block(); from < h.queries; from += step {
		f(from, min(step, h.queries-from))
	}
}

// matrix returns the head's matrix of a stack, from a row on.
func (h *head[T]) matrix(s stack, data []T, row int) gemm.Matrix[T] {
	return gemm.Matrix[T]{Data: data[min(s.place(h.index)+row*s.row(), len(data)):], Row: s.row(), Col: 1}
}

// compare stores scale·q·kᵀ with the mask added.
func (h *head[T]) compare(s []T, q, k gemm.Matrix[T], mask []T, from, rows int) {
	h.multiply(q, k.T(), gemm.Shape{M: rows, N: h.keys, K: h.size}, gemm.Rows(s, h.keys), false)
	for i := range rows {
		row := s[i*h.keys:][:h.keys]
		var added []T
		step := 0
		if h.mask != nil && h.keys > 0 {
			last := len(h.mask.shape) - 1
			added, step = mask[h.mask.place(h.index)+(from+i)*h.mask.row():], int(h.mask.strides[last])
		}
		scaleAdd(row, h.scale, added, step)
	}
}

// multiply stores a·b in the rows of c, or adds it.
func (h *head[T]) multiply(a, b gemm.Matrix[T], s gemm.Shape, c gemm.Matrix[T], add bool) {
	if s.M == 0 || s.N == 0 {
		return
	}
	switch a := any(a).(type) {
	case gemm.Matrix[float32]:
		to := any(c).(gemm.Matrix[float32])
		gemm.Float(h.pool, s, h.product, gemm.FloatProduct{A: a, B: any(b).(gemm.Matrix[float32]), C: to.Data, Stride: to.Row, Accumulate: add})
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

// scaleAdd multiplies scores and adds a mask, with stride step, 0 or 1.
func scaleAdd[T number](row []T, scale T, mask []T, step int) {
	if x, ok := any(row).([]float32); ok {
		kernel.MulScalar(x, x, float32(scale))
		switch m := any(mask).([]float32); {
		case len(m) == 0:
		case step == 0:
			kernel.AddScalar(x, x, m[0])
		default:
			kernel.Add(x, x, m[:len(x)])
		}
		return
	}
	for i := range row {
		row[i] *= scale
		if len(mask) > 0 {
			row[i] += mask[i*step]
		}
	}
}

// softmaxKeep replaces scores by weights and returns their log-sum-exp. With zeros, the weights of a query whose keys are all
// masked are zero, where a plain softmax is NaN.
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
