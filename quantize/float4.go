package quantize

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
	"github.com/mcompress/mcompress/pass"
)

// Float4 stores weights as floats of 4 bits, e2m1, whose blocks share a float16 scale, behind DequantizeLinear. ONNX Runtime has no CPU
// kernel for them: the embedded engine alone runs the model.
var Float4 = &pass.Method{
	Name:    "float4",
	Command: "quantize",
	Doc:     "4-bit floats in blocks for weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings; ONNX Runtime does not run them on CPUs; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		size := blockSize(defaultBlock)
		fs.Var(&size, "block", "`number` of weights that share a scale: a power of two from 16 to 256")
		w := &small{form: pass.BlockedFloat4, note: "ONNX Runtime has no CPU kernel for it: the embedded engine runs the model"}
		// DequantizeLinear knows the type and output_dtype from opset 23 on.
		w.smallType = smallType{dt: ir.Float4E2M1, format: kernel.E2M1, opset: 23}
		w.weight = func(t smallType, v *ir.Value, axes []int) smallWeight { return newBlocked(t, v, axes, int64(size)) }
		return w.run
	},
}

// A blocked is a weight as outer × along × inner elements, whose blocks of size elements along the middle share a scale.
type blocked struct {
	smallType
	t                         *ir.Tensor
	axis                      int
	size, outer, along, inner int64
}

// newBlocked cuts v along the first axis that its readers sum over.
func newBlocked(t smallType, v *ir.Value, kept []int, size int64) smallWeight {
	shape := v.Const.Shape
	for axis, d := range shape {
		if slices.Contains(kept, axis) || d < size || len(shape) < 2 {
			continue
		}
		b := &blocked{smallType: t, t: v.Const, axis: axis, size: size, outer: 1, along: d, inner: 1}
		for i, d := range shape {
			switch {
			case i < axis:
				b.outer *= d
			case i > axis:
				b.inner *= d
			}
		}
		return b
	}
	return nil
}

func (b *blocked) scales() []int64 {
	s := slices.Clone(b.t.Shape)
	s[b.axis] = ceil(b.along, b.size)
	return s
}

func (b *blocked) bytes() int64 {
	return (b.t.Elems()+1)/2 + 2*(ir.Spec{Shape: b.scales()}).Elems()
}

func (b *blocked) recipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "float4",
		In:   []*ir.Tensor{b.t},
		Out:  []ir.Spec{{Name: b.t.Name, DType: b.dt, Shape: b.t.Shape}, {Name: b.t.Name, DType: ir.Float16, Shape: b.scales()}},
		Work: b.window()*8 + 2*(ir.Spec{Shape: b.scales()}).Elems(),
		Run:  b.run,
	}
}

// window is how many elements are read at a time: whole slabs, or one row of blocks where a slab is large.
func (b *blocked) window() int64 {
	slab := b.along * b.inner
	if slab > pass.Block {
		return b.size * b.inner
	}
	return min(b.outer, max(1, pass.Block/slab)) * slab
}

// rows calls do for each stretch of elements that is a row of blocks: n elements along the middle axis.
func (b *blocked) rows(do func(at, n int64) error) error {
	for o := range b.outer {
		for i := int64(0); i < b.along; i += b.size {
			if err := do((o*b.along+i)*b.inner, min(b.size, b.along-i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *blocked) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	f := pass.NewFloats(in[0], b.t.DType)
	held := make([]float32, b.window())
	var from, have int64
	codes, scales := &nibbles{w: out[outCodes]}, []uint16(nil)
	k := newBlockCoder(b.format, b.size, b.inner)
	err := b.rows(func(at, n int64) error {
		if at+n*b.inner > from+have {
			from, have = at, min(int64(len(held)), b.t.Elems()-at)
			if err := f.Read(held[:have], at); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		x := held[at-from:][:n*b.inner]
		if why := noScale(kernel.AbsMaxBits(x), 1); why != "" {
			return &pass.Unfit{Tensor: b.t.Name, Reason: why}
		}
		s, err := k.row(x)
		if err != nil {
			return &pass.Unfit{Tensor: b.t.Name, Reason: err.Error()}
		}
		scales = append(scales, s...)
		return codes.write(k.codes[:len(x)])
	})
	if err != nil {
		return err
	}
	if err := codes.flush(); err != nil {
		return err
	}
	_, err = out[outScales].Write(kernel.Bytes(scales))
	return err
}

// emit is DequantizeLinear in blocks.
func (b *blocked) emit(g *ir.Graph, at *ir.Node, codes, scales *ir.Value) *ir.Value {
	return g.Insert(at, "DequantizeLinear", []*ir.Value{codes, scales}, ir.IntAttr("axis", int64(b.axis)),
		ir.IntAttr("block_size", b.size), ir.IntAttr("output_dtype", int64(ir.Float)))
}

// restore makes the float weight from codes and scales.
func (b *blocked) restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "restore", In: parts, Out: []ir.Spec{b.t.Spec}, Work: 16 * b.size * b.inner}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		w := &floatWriter{w: out[0], dt: b.t.DType}
		packed, codes := make([]byte, b.size*b.inner/2+2), make([]byte, b.size*b.inner+1)
		raw, x := make([]uint16, b.inner), make([]float32, 2*b.inner)
		block, y := int64(0), make([]float32, b.size*b.inner)
		return b.rows(func(at, n int64) error {
			n *= b.inner
			bytes := packed[:(at%2+n+1)/2]
			if err := ir.ReadFull(in[outCodes], bytes, at/2); err != nil {
				return err
			}
			kernel.Unpack(codes[:at%2+n], bytes, 4, false)
			if err := ir.ReadFull(in[outScales], kernel.Bytes(raw), 2*block*b.inner); err != nil {
				return err
			}
			block++
			scale := x[:b.inner]
			kernel.F32FromF16(scale, raw)
			b.format.Values(y[:n], codes[at%2:][:n], 1)
			for i := range y[:n] {
				y[i] *= scale[int64(i)%b.inner]
			}
			done := y[:n]
			return w.flush(ctx, &done)
		})
	}
	return r.Derive()[0]
}

// peaks are the numbers of the format, or beyond it, that a block's largest magnitude may be brought to: the numbers between are spread
// unevenly, and what fits best is tried.
var peaks = []float32{6, 7, 5.5, 5, 4.5, 4}

// A blockCoder finds the codes and scales of a row of blocks: one for each place of the inner axis.
type blockCoder struct {
	format  kernel.SmallFloat
	peaks   []float32
	inner   int64
	codes   []byte
	trial   []byte
	column  []float32
	back    []float32
	scales  []uint16
	rounded []float32
}

func newBlockCoder(f kernel.SmallFloat, size, inner int64) *blockCoder {
	return &blockCoder{
		format: f, peaks: peaks, inner: inner, codes: make([]byte, size*inner), trial: make([]byte, 2*size),
		column: make([]float32, size), back: make([]float32, size), scales: make([]uint16, inner), rounded: make([]float32, 1),
	}
}

// row codes x, rows × inner elements, into k.codes, and returns the scales.
func (k *blockCoder) row(x []float32) ([]uint16, error) {
	rows := int64(len(x)) / k.inner
	for j := range k.inner {
		column := k.column[:rows]
		for i := range column {
			column[i] = x[int64(i)*k.inner+j]
		}
		scale, err := k.best(column)
		if err != nil {
			return nil, err
		}
		k.scales[j] = scale
		for i, c := range k.trial[:rows] {
			k.codes[int64(i)*k.inner+j] = c
		}
	}
	return k.scales, nil
}

// best is the scale, as float16, of least squared error; its codes stand in k.trial.
func (k *blockCoder) best(x []float32) (uint16, error) {
	n, least, scale := len(x), math.Inf(1), uint16(0)
	peak := math.Float32frombits(kernel.AbsMaxBits(x))
	if peak == 0 {
		k.format.Codes(k.trial[:n], x, 1)
		return oneHalf, nil
	}
	other, kept := k.trial[n:2*n], k.trial[:n]
	for _, p := range k.peaks {
		h := [1]uint16{}
		kernel.F16FromF32(h[:], []float32{peak / p})
		kernel.F32FromF16(k.rounded, h[:])
		s := k.rounded[0]
		if s == 0 || math.IsInf(float64(s), 0) {
			continue
		}
		k.format.Codes(other, x, s)
		k.format.Values(k.back[:n], other, s)
		if e := squares(x, k.back[:n]); e < least {
			least, scale = e, h[0]
			copy(kept, other)
		}
	}
	if math.IsInf(least, 1) {
		return 0, fmt.Errorf("a block's largest magnitude, %g, gives no float16 scale", peak)
	}
	return scale, nil
}

// oneHalf is 1 as float16.
const oneHalf = 0x3c00

func squares(x, y []float32) float64 {
	sum := 0.0
	for i, v := range x {
		d := float64(v) - float64(y[i])
		sum += float64(d * d)
	}
	return sum
}

// nibbles packs codes of 4 bits, two in a byte over the whole tensor.
type nibbles struct {
	w    io.Writer
	buf  []byte
	held bool // the last byte has its lower half
}

func (p *nibbles) write(codes []byte) error {
	for _, c := range codes {
		if p.held {
			p.buf[len(p.buf)-1] |= c << 4
		} else {
			p.buf = append(p.buf, c)
		}
		p.held = !p.held
	}
	if len(p.buf) < ir.CopyBuffer {
		return nil
	}
	whole := len(p.buf) - int(b2i(p.held))
	_, err := p.w.Write(p.buf[:whole])
	p.buf = append(p.buf[:0], p.buf[whole:]...)
	return err
}

func (p *nibbles) flush() error {
	_, err := p.w.Write(p.buf)
	p.buf, p.held = nil, false
	return err
}
