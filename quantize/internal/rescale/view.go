package rescale

import (
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A scale multiplies a weight along an axis.
type scale struct {
	axis
	by []float32 // one per index of the axis
}

// of is a view of t multiplied by s.
func (s scale) of(t *ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "rescale", In: []*ir.Tensor{t}, Out: []ir.Spec{t.Spec}}
	r.View = func(in []io.ReaderAt) io.ReaderAt { return &view{scale: s, in: in[0], dt: t.DType} }
	return r.Derive()[0]
}

// inverse is the division by s; ok is false if a factor is zero.
func (s scale) inverse() (inv scale, ok bool) {
	inv = scale{s.axis, make([]float32, len(s.by))}
	for i, f := range s.by {
		// A channel that was multiplied by 0 cannot be restored.
		if f == 0 {
			return inv, false
		}
		inv.by[i] = 1 / f
	}
	return inv, true
}

// A view is a payload that is multiplied when read, at any offset and by several
// goroutines concurrently.
type view struct {
	scale
	in     io.ReaderAt
	dt     ir.DType
	coarse *scale // quantization steps for fake quantization; may be nil
}

// ReadAt reads whole elements in place; partial elements are copied.
func (v *view) ReadAt(p []byte, off int64) (int, error) {
	size := v.dt.Bits() / 8
	end := off + int64(len(p))
	// The common case, without a copy: readers ask for whole elements.
	if off%size == 0 && end%size == 0 && kernel.Aligned(p, size) {
		return v.read(p, off/size)
	}
	first := off / size
	words := make([]float32, ((end+size-1)/size-first)*size/4+1) // aligned for any element
	b := kernel.Bytes(words)[:((end+size-1)/size-first)*size]
	n, err := v.read(b, first)
	skip := min(int(off-first*size), n)
	return copy(p, b[skip:n]), err
}

// read fills b with whole elements from index first on.
func (v *view) read(b []byte, first int64) (int, error) {
	if v.dt == ir.Float {
		n, err := v.in.ReadAt(b, first*4)
		v.change(kernel.Words[float32](b[:n/4*4]), first)
		return n, err
	}
	// Of its own for each call: a view is read by several goroutines.
	x := make([]float32, len(b)/2)
	if err := pass.NewFloats(v.in, v.dt).Read(x, first); err != nil {
		return 0, err
	}
	v.change(x, first)
	half := kernel.Words[uint16](b)
	if v.dt == ir.BFloat16 {
		kernel.BF16FromF32(half, x)
	} else {
		kernel.F16FromF32(half, x)
	}
	return len(b), nil
}

// change scales and rounds elements from index first on.
func (v *view) change(x []float32, first int64) {
	v.multiply(x, first)
	if v.coarse == nil {
		return
	}
	for i, f := range x {
		if step := v.coarse.by[(first+int64(i))/v.coarse.axis.inner%v.coarse.axis.n]; step > 0 {
			x[i] = float32(math.RoundToEven(float64(f/step))) * step
		}
	}
}

// multiply scales elements from index first on.
func (v *view) multiply(x []float32, first int64) {
	for len(x) > 0 {
		if v.inner == 1 {
			f := v.by[first%v.n:]
			k := min(len(x), len(f))
			kernel.Mul(x[:k], x[:k], f[:k])
			x, first = x[k:], first+int64(k)
			continue
		}
		k := min(int64(len(x)), v.inner-first%v.inner)
		kernel.MulScalar(x[:k], x[:k], v.by[first/v.inner%v.n])
		x, first = x[k:], first+k
	}
}
