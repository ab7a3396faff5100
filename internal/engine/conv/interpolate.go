package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A pass resizes one axis: from outer × in × inner elements to outer × out × inner.
type pass struct {
	resizedAxis
	outer, inner int
}

// passes are the axes that change, the last one first: it is the slowest, and the passes of other axes may add rows to
// it.
func (r *resizePlan) passes(shape []int64) []pass {
	dims := append([]int64(nil), shape...)
	var list []pass
	for i := len(dims) - 1; i >= 0; i-- {
		l := r.axis(i, dims[i])
		if l.isUnchanged() {
			continue
		}
		list = append(list, pass{l, int(op.Product(dims[:i])), int(op.Product(dims[i+1:]))})
		dims[i] = r.out[i]
	}
	return list
}

// work is the size in bytes of the values between passes, and of x and the result as floats if they have another type.
func (r *resizePlan) work(x *ir.Array) int64 {
	if r.mode == "nearest" {
		return 0
	}
	size := int64(8)
	if computesInFloat32(x.DType) {
		size = 4
	}
	n := int64(0)
	if x.DType != ir.Float && x.DType != ir.Double {
		n += aligned(size*x.Elems()) + aligned(size*op.Product(r.out))
	}
	list := r.passes(x.Shape)
	for _, p := range list[:max(len(list)-1, 0)] {
		n += aligned(size * int64(p.outer*p.out*p.inner))
	}
	return n
}

func computesInFloat32(dt ir.DType) bool { return dt == ir.Float || isHalf(dt) }

// interpolate resizes with weights.
func (r *resizePlan) interpolate(c *op.Call) error {
	if c.In[0].Elems() == 0 {
		return fmt.Errorf("input X, %s, is empty", c.In[0])
	}
	if computesInFloat32(c.In[0].DType) {
		interpolateAs(r, c, kernel.Axpy)
	} else {
		interpolateAs(r, c, axpy[float64])
	}
	return nil
}

func interpolateAs[F float](r *resizePlan, c *op.Call, axpy func(y []F, a F, x []F)) {
	buf := scratch[F](c.Work)
	x, y := elements[F](c.In[0]), elements[F](c.Out[0])
	if x == nil {
		x, y = buf.take(int(c.In[0].Elems())), buf.take(int(c.Out[0].Elems()))
		load(x, c.In[0])
		defer func() { store(c.Out[0], y) }()
	}
	list := r.passes(c.In[0].Shape)
	if len(list) == 0 {
		copy(y, x)
	}
	for i, p := range list {
		to := y
		if i < len(list)-1 {
			to = buf.take(p.outer * p.out * p.inner)
		}
		f := r.filter(p.resizedAxis)
		if p.inner == 1 {
			along(c.Pool, p, f, to, x, F(r.beyond))
		} else {
			across(c.Pool, p, f, to, x, F(r.beyond), axpy)
		}
		x = to
	}
}

// along resizes the axis whose elements are contiguous.
func along[F float](p *op.Pool, s pass, f *filter, y, x []F, beyond F) {
	weight := make([]F, len(f.weight))
	for i, v := range f.weight {
		weight[i] = F(v)
	}
	p.Rows(s.outer, 1+resizeGrain/(s.out*f.n), func(from, to int) {
		for i := from; i < to; i++ {
			mix(f, weight, part(y, i, s.out), part(x, i, s.in), beyond)
		}
	})
}

const resizeGrain = 1 << 14 // minimum number of weights per task

func mix[F float](f *filter, weight, y, x []F, beyond F) {
	for o := range y {
		sum := F(0)
		at := part(f.at, o, f.n)
		for k, w := range part(weight, o, f.n) {
			// An element of weight 0 is not part of the result, as in across: 0·Inf is NaN.
			if w != 0 {
				sum += w * x[at[k]]
			}
		}
		y[o] = sum
	}
	for o, outside := range f.outside {
		if outside {
			y[o] = beyond
		}
	}
}

// across resizes an axis of whole rows.
func across[F float](p *op.Pool, s pass, f *filter, y, x []F, beyond F, axpy func(y []F, a F, x []F)) {
	p.Rows(s.outer*s.out, 1+resizeGrain/(s.inner*f.n), func(from, to int) {
		for i := from; i < to; i++ {
			o, row := i%s.out, part(y, i, s.inner)
			if f.outside != nil && f.outside[o] {
				fill(row, beyond)
				continue
			}
			clear(row)
			for k, w := range part(f.weight, o, f.n) {
				if w != 0 {
					axpy(row, F(w), part(x, i/s.out*s.in+int(f.at[o*f.n+k]), s.inner))
				}
			}
		}
	})
}

func axpy[F float](y []F, a F, x []F) {
	for i, v := range x {
		y[i] += a * v
	}
}
