package quantize

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A stored is a coding whose tensors are constants of the model.
type stored struct {
	*coding
	home               *ir.Graph // the graph that holds them
	codes, scale, zero *ir.Value // zero is nil for symmetric schemes
	turned             *ir.Value // the codes transposed, made on demand
	stated             *ir.Value // the symmetric zero points, where they are written out
}

// store adds c's tensors to g as base's name and a short suffix.
func store(g *ir.Graph, base *ir.Value, c *coding) *stored {
	ts := c.recipe().Derive()
	st := &stored{coding: c, home: g}
	st.codes = g.AddConst(base.Name+"_q", ts[outCodes])
	st.scale = g.AddConst(base.Name+"_s", ts[outScales])
	if len(ts) > outZeros {
		st.zero = g.AddConst(base.Name+"_z", ts[outZeros])
	}
	return st
}

// parts are the ledger's account of st.
func (st *stored) parts() []pass.Part {
	ps := []pass.Part{
		{Role: pass.Payload, Value: st.codes, Tensor: st.codes.Const},
		{Role: pass.Scales, Value: st.scale, Tensor: st.scale.Const},
	}
	if st.zero != nil {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: st.zero, Tensor: st.zero.Const})
	}
	if st.stated != nil {
		ps = append(ps, pass.Part{Role: pass.Scales, Value: st.stated, Tensor: st.stated.Const})
	}
	return ps
}

// bytes is what the parts take.
func (c *coding) bytes() int64 {
	if c.b != nil {
		return c.b.bytes(c.shape)
	}
	per := int64(4)
	if !c.s.symmetric {
		per = 5
	}
	return c.t.Elems() + per*c.g.scales()
}

// restore makes the float weight from its parts, in the type and shape it had.
func (c *coding) restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "dequantize", In: parts, Out: []ir.Spec{c.t.Spec}, Work: 3 * ir.CopyBuffer}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		if c.b != nil {
			return c.restoreBlocks(ctx, in, out[0])
		}
		a, err := c.readAffine(in)
		if err != nil {
			return err
		}
		return c.dequantize(ctx, in[outCodes], out[0], a)
	}
	return r.Derive()[0]
}

func (c *coding) readAffine(in []io.ReaderAt) (*affine, error) {
	a := newAffine(c.g.scales(), c.s)
	if err := ir.ReadFull(in[outScales], kernel.Bytes(a.scale), 0); err != nil || c.s.symmetric {
		return a, err
	}
	z := make([]byte, len(a.zero))
	if err := ir.ReadFull(in[outZeros], z, 0); err != nil {
		return nil, err
	}
	for i, b := range z {
		a.zero[i] = int32(int8(b))
		if c.s.unsigned {
			a.zero[i] = int32(b)
		}
	}
	return a, nil
}

// dequantize writes the float weight run by run.
func (c *coding) dequantize(ctx context.Context, codes io.ReaderAt, out io.Writer, a *affine) error {
	buf := make([]float32, 0, c.g.window())
	q := make([]byte, c.g.window())
	w := &floatWriter{w: out, dt: c.t.DType}
	codes = c.inOrder(codes)
	err := c.g.runs(func(r run) error {
		if len(buf)+int(r.n) > cap(buf) {
			if err := w.flush(ctx, &buf); err != nil {
				return err
			}
		}
		if err := ir.ReadFull(codes, q[:r.n], r.at); err != nil {
			return err
		}
		buf = buf[:len(buf)+int(r.n)]
		c.dequantizeRun(buf[len(buf)-int(r.n):], q[:r.n], r, a)
		return nil
	})
	if err != nil {
		return err
	}
	return w.flush(ctx, &buf)
}

func (c *coding) dequantizeRun(dst []float32, q []byte, r run, a *affine) {
	if !c.g.cols() {
		kernel.Dequantize(dst, q, !c.s.unsigned, a.scale[r.first], a.zeroOf(c.s, r.first))
		return
	}
	zero := make([]int32, c.g.chans)
	for i := range zero {
		zero[i] = a.zeroOf(c.s, r.first+int64(i))
	}
	kernel.DequantizeCols(dst, q, !c.s.unsigned, a.scale[r.first:][:c.g.chans], zero)
}

// untransposed is the codes in the float weight's order. Turned codes are read a
// panel of rows at a time.
type untransposed struct {
	r          io.ReaderAt
	rows, cols int64 // of the float weight
	at, n      int64 // the panel that is held, in rows
	panel, raw []byte
}

func (c *coding) inOrder(r io.ReaderAt) io.ReaderAt {
	if !c.transpose {
		return r
	}
	return &untransposed{r: r, rows: c.shape[0], cols: c.shape[1]}
}

// ReadAt serves one run at a time, as dequantize asks: it never fails halfway.
func (u *untransposed) ReadAt(q []byte, off int64) (int, error) {
	done := 0
	for done < len(q) {
		at := off + int64(done)
		if row := at / u.cols; row < u.at || row >= u.at+u.n {
			if err := u.load(row); err != nil {
				return done, err
			}
		}
		done += copy(q[done:], u.panel[at-u.at*u.cols:u.n*u.cols])
	}
	return done, nil
}

// load turns as many rows from row on as fit into a block.
func (u *untransposed) load(row int64) error {
	n := min(u.rows-row, max(1, pass.Block/max(1, u.cols)))
	if u.panel == nil {
		u.panel, u.raw = make([]byte, n*u.cols), make([]byte, n*u.cols)
	}
	for col := range u.cols {
		if err := ir.ReadFull(u.r, u.raw[col*n:][:n], col*u.rows+row); err != nil {
			return err
		}
	}
	kernel.TransposeBytes(u.panel[:n*u.cols], u.raw[:n*u.cols], int(u.cols), int(n))
	u.at, u.n = row, n
	return nil
}

// A floatWriter writes float32 values as a float type.
type floatWriter struct {
	w    io.Writer
	dt   ir.DType
	half []uint16
}

func (w *floatWriter) flush(ctx context.Context, buf *[]float32) error {
	x := *buf
	*buf = x[:0]
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.dt == ir.Float {
		_, err := w.w.Write(kernel.Bytes(x))
		return err
	}
	if cap(w.half) < len(x) {
		w.half = make([]uint16, len(x))
	}
	h := w.half[:len(x)]
	if w.dt == ir.BFloat16 {
		kernel.BF16FromF32(h, x)
	} else {
		kernel.F16FromF32(h, x)
	}
	_, err := w.w.Write(kernel.Bytes(h))
	return err
}
