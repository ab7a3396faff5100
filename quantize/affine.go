package quantize

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A coding is a weight as it will be stored: codes, scales and, for asymmetric
// schemes, zero points.
type coding struct {
	t         *ir.Tensor // the float weight
	shape     []int64    // how its readers see it, before any transposition
	g         grid       // over t
	s         scheme
	transpose bool      // it is a matrix, and the codes are stored as its transpose
	axis      int       // of shape, that has a scale for each index; -1 for one scale
	scales    []int64   // shape of the scales
	buffers   *buffers  // shared by the codings of a run; may be nil
	b         *blocking // where blocks share scales, instead of g and s; may be nil
}

// The outputs of a coding's recipe, in order.
const (
	outCodes = iota
	outScales
	outZeros
)

// recipe describes how codes and scales are computed; each weight is read once where
// its runs have their scale at hand, else twice.
func (c *coding) recipe() *ir.Recipe {
	if c.b != nil {
		return c.blockRecipe()
	}
	shape := c.shape
	if c.transpose {
		shape = []int64{shape[1], shape[0]}
	}
	r := &ir.Recipe{
		Name: "quantize",
		In:   []*ir.Tensor{c.t},
		Out: []ir.Spec{
			{Name: c.t.Name, DType: c.s.dtype(), Shape: shape},
			{Name: c.t.Name, DType: ir.Float, Shape: c.scales},
		},
		Work: c.work(),
		Run:  c.run,
	}
	if !c.s.symmetric {
		r.Out = append(r.Out, ir.Spec{Name: c.t.Name, DType: c.s.dtype(), Shape: c.scales})
	}
	return r
}

func (c *coding) work() int64 {
	held := c.g.window()
	if c.g.rows > 1 || c.g.inner > pass.Block {
		held = max(held, min(c.g.elems(), holdElems))
	}
	if c.transpose {
		held = max(held, c.panel()*c.shape[0]+c.panel()*c.shape[0]/2)
	}
	return held*(4+1) + held*(c.t.DType.Bits()/8)*b2i(c.t.DType != ir.Float) + c.g.scales()*16
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *coding) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	var a *affine
	var err error
	switch {
	case c.transpose:
		a, err = c.transposed(ctx, in[0], out[outCodes])
	case c.g.rows == 1 && c.g.inner <= pass.Block:
		a, err = c.fused(ctx, in[0], out[outCodes])
	default:
		a, err = c.twice(ctx, in[0], out[outCodes])
	}
	if err != nil {
		return err
	}
	if _, err := out[outScales].Write(kernel.Bytes(a.scale)); err != nil {
		return err
	}
	if a.zero == nil {
		return nil
	}
	_, err = out[outZeros].Write(codeBytes(a.zero))
	return err
}

// codeBytes are zero points as codes: the low byte of each.
func codeBytes(zero []int32) []byte {
	b := make([]byte, len(zero))
	for i, z := range zero {
		b[i] = byte(z)
	}
	return b
}

// twice goes through the weight for its scales and then for its codes.
func (c *coding) twice(ctx context.Context, in io.ReaderAt, out io.Writer) (*affine, error) {
	r := newReader(c.buffers, in, c.t.DType, c.g, 2)
	defer r.close()
	a, err := r.measure(ctx, c.t, c.g, c.s)
	if err != nil {
		return nil, err
	}
	return a, c.write(ctx, r, out, a)
}

// fused measures and quantizes each run while it is in the cache.
func (c *coding) fused(ctx context.Context, in io.ReaderAt, out io.Writer) (*affine, error) {
	m, a := newRanges(c.g.scales(), c.s), newAffine(c.g.scales(), c.s)
	r := newReader(c.buffers, in, c.t.DType, c.g, 1)
	defer r.close()
	return a, c.quantize(ctx, r, out, func(q run, x []float32, dst []byte) error {
		m.add(c.g, q, x)
		scale, zero, err := m.fit(c.s, q.first, c.t.Name)
		if err != nil {
			return err
		}
		a.set(int(q.first), scale, zero)
		kernel.Quantize(dst, x, scale, zero, c.s.codes())
		return nil
	})
}

// write quantizes by scales that are known.
func (c *coding) write(ctx context.Context, r *reader, out io.Writer, a *affine) error {
	fixed := a.zero
	if fixed == nil && c.s.zero() != 0 && c.g.cols() {
		fixed = make([]int32, c.g.scales())
		for i := range fixed {
			fixed[i] = c.s.zero()
		}
	}
	return c.quantize(ctx, r, out, func(q run, x []float32, dst []byte) error {
		if !c.g.cols() {
			kernel.Quantize(dst, x, a.scale[q.first], a.zeroOf(c.s, q.first), c.s.codes())
			return nil
		}
		var zero []int32
		if fixed != nil {
			zero = fixed[q.first:][:c.g.chans]
		}
		kernel.QuantizeCols(dst, x, a.scale[q.first:][:c.g.chans], zero, c.s.codes())
		return nil
	})
}

// quantize hands each run and its place among the codes to do, and writes the codes
// in blocks.
func (c *coding) quantize(ctx context.Context, r *reader, out io.Writer, do func(q run, x []float32, dst []byte) error) error {
	buf, free := c.buffers.takeBytes(c.g.window())
	defer free()
	buf = buf[:0:c.g.window()]
	err := c.g.runs(func(q run) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		if len(buf)+len(x) > cap(buf) {
			if err := flush(ctx, out, &buf); err != nil {
				return err
			}
		}
		buf = buf[:len(buf)+len(x)]
		return do(q, x, buf[len(buf)-len(x):])
	})
	if err != nil {
		return err
	}
	return flush(ctx, out, &buf)
}

func flush(ctx context.Context, out io.Writer, buf *[]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := out.Write(*buf)
	*buf = (*buf)[:0]
	return err
}
