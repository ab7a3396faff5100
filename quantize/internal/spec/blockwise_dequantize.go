package spec

import (
	"context"
	"io"
	"math/bits"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Restore is the float weight, dequantized from its parts.
func (c *Blockwise) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "dequantize", In: parts, Out: []ir.Spec{c.Weight.Spec},
		Work: 2*c.Layout.limit.panelBytes() + 8*c.Layout.limit.tileElems()}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		d := newBlockDequantizer(c, in)
		defer d.allocate(c.Buffers)()
		return d.run(ctx, &FloatWriter{W: out[0], Dt: c.Weight.DType})
	}
	return r.Derive()[0]
}

// panelBytes is about the number of quantized values that are in memory while a weight is dequantized, one in a byte.
// Panels of a weight that is stored transposed have a part of each line: the larger they are, the fewer parts are read.
func (l PieceLimit) panelBytes() int64 { return 32 * l.Elems() }

// tileElems is about the number of elements that are dequantized at a time.
func (l PieceLimit) tileElems() int64 { return 4 * l.Elems() }

// tile is the number of lines of n elements, or positions, that are dequantized at a time: a power of two, so that
// parts of blocks are long.
func (l PieceLimit) tile(n int64) int64 {
	return 1 << (bits.Len64(uint64(max(1, l.tileElems()/max(1, n)))) - 1)
}

// A blockDequantizer dequantizes one weight, panel by panel. Its lines are those of the stored weight: rows, or columns
// if it is stored column-major. A panel is a range of lines, and of each the same range of positions.
type blockDequantizer struct {
	*BlockLayout
	lines, width     int64 // of the weight
	panelElems       int64 // about the number of values of a panel
	values           packedLines
	scales           *pass.Floats
	zeros            packedLines  // where zero points are stored integers
	points           *pass.Floats // where they are floats
	x, transposed    []float32
	quantized        []byte
	unpacked         []byte // zero points
	scale, zeroPoint []float32
	zero             []int32
	panel            blockPanel
}

// A blockPanel is the place of a panel in the weight, and that of its scales in the lines of scales.
type blockPanel struct {
	line, lines, at, width                     int64
	scaleLine, scaleLines, scaleAt, scaleWidth int64
}

func newBlockDequantizer(c *Blockwise, in []io.ReaderAt) *blockDequantizer {
	b := c.Layout
	d := &blockDequantizer{BlockLayout: b, lines: b.Cols, width: b.Rows, panelElems: b.limit.panelBytes(),
		scales: pass.NewFloats(in[OutScales], b.scaleDType())}
	if b.RowMajor() {
		d.lines, d.width = b.Rows, b.Cols
	}
	signed, stride, zeroStride := b.Spec.Low < 0, d.width, d.scaleStride()
	if b.ForNBits {
		stride = b.NumBlocks() * int64(b.Spec.Block)
		zeroStride = ceilDiv(b.NumBlocks(), int64(8/b.Bits)) * int64(8/b.Bits)
	}
	d.values = packedLines{r: in[OutQuantized], bits: b.Bits, stride: stride, signed: signed}
	switch {
	case b.FloatZeroPoints:
		d.points = pass.NewFloats(in[OutZeroPoints], b.scaleDType())
	case b.HasZeroPoints():
		d.zeros = packedLines{r: in[OutZeroPoints], bits: b.zeroPointBits(), stride: zeroStride, signed: signed}
	}
	return d
}

// allocate takes the largest buffers from the pool if the weight has several panels, and returns a function that frees
// them.
func (d *blockDequantizer) allocate(pool *BufferPool) func() {
	if d.lines*d.width <= d.limit.panelBytes() {
		return func() {}
	}
	var free [3]func()
	d.quantized, free[0] = pool.takeBytes(d.limit.panelBytes())
	d.x, free[1] = pool.takeFloats(d.limit.tileElems())
	d.transposed, free[2] = pool.takeFloats(d.limit.tileElems())
	return func() {
		for _, f := range free {
			f()
		}
	}
}

// scaleStride is the number of scales in a line of scales.
func (d *blockDequantizer) scaleStride() int64 {
	if d.RowMajor() {
		return d.Cols
	}
	return d.NumBlocks()
}

// run writes the weight.
func (d *blockDequantizer) run(ctx context.Context, w *FloatWriter) error {
	block := int64(d.Spec.Block)
	wholeBlocks := func(n int64) int64 { return max(1, n/block) * block }
	// In the order of the weight: lines one after the other, or a range of positions of all lines.
	if !d.Transposed {
		lines := max(1, d.panelElems/max(1, d.width))
		if d.RowMajor() {
			// Rows of a block share scales, which are read from the first row of a block on.
			lines = wholeBlocks(lines)
		}
		for line := int64(0); line < d.lines; line += lines {
			n := min(lines, d.lines-line)
			if err := d.load(line, n, 0, d.width); err != nil {
				return err
			}
			if err := d.write(ctx, w, n, d.limit.tile(d.width)); err != nil {
				return err
			}
		}
		return nil
	}
	width := max(1, d.panelElems/max(1, d.lines))
	if !d.RowMajor() {
		// Likewise the positions of a block.
		width = wholeBlocks(width)
	}
	for at := int64(0); at < d.width; at += width {
		n := min(width, d.width-at)
		if err := d.load(0, d.lines, at, n); err != nil {
			return err
		}
		if err := d.writeTransposed(ctx, w, n, d.limit.tile(d.lines)); err != nil {
			return err
		}
	}
	return nil
}

// load reads a panel, from the first line or position of a block on.
func (d *blockDequantizer) load(line, lines, at, width int64) error {
	p := blockPanel{line: line, lines: lines, at: at, width: width, scaleLine: line, scaleLines: lines, scaleAt: at,
		scaleWidth: width}
	if block := int64(d.Spec.Block); d.RowMajor() {
		p.scaleLine, p.scaleLines = line/block, ceilDiv(lines, block)
	} else {
		p.scaleAt, p.scaleWidth = at/block, ceilDiv(width, block)
	}
	d.panel = p
	d.quantized = resized(d.quantized, lines*width)
	if err := d.values.read(d.quantized, line, lines, at, width); err != nil {
		return err
	}
	n := p.scaleLines * p.scaleWidth
	d.scale = resized(d.scale, n)
	if err := d.readFloats(d.scales, d.scale); err != nil {
		return err
	}
	switch {
	case d.points != nil:
		d.zeroPoint = resized(d.zeroPoint, n)
		return d.readFloats(d.points, d.zeroPoint)
	case d.zeros.r == nil:
		d.zero = resized(d.zero, n)
		for i := range d.zero {
			d.zero[i] = d.ImpliedZeroPoint()
		}
		return nil
	}
	d.zero, d.unpacked = resized(d.zero, n), resized(d.unpacked, n)
	if err := d.zeros.read(d.unpacked, p.scaleLine, p.scaleLines, p.scaleAt, p.scaleWidth); err != nil {
		return err
	}
	for i, z := range d.unpacked {
		d.zero[i] = int32(z)
		if d.zeros.signed {
			d.zero[i] = int32(int8(z))
		}
	}
	return nil
}

// readFloats reads the panel's scales, or float zero points.
func (d *blockDequantizer) readFloats(from *pass.Floats, to []float32) error {
	p, stride := d.panel, d.scaleStride()
	if p.scaleWidth == stride {
		return from.Read(to, p.scaleLine*stride)
	}
	for i := range p.scaleLines {
		if err := from.Read(to[i*p.scaleWidth:][:p.scaleWidth], (p.scaleLine+i)*stride+p.scaleAt); err != nil {
			return err
		}
	}
	return nil
}

// write writes the n lines of the panel, some at a time.
func (d *blockDequantizer) write(ctx context.Context, w *FloatWriter, n, some int64) error {
	for line := int64(0); line < n; line += some {
		k := min(some, n-line)
		d.x = resized(d.x, k*d.panel.width)
		d.dequantize(line, k, 0, d.panel.width)
		if err := w.Flush(ctx, &d.x); err != nil {
			return err
		}
	}
	return nil
}

// writeTransposed writes the n positions of the panel, some at a time, each from all lines.
func (d *blockDequantizer) writeTransposed(ctx context.Context, w *FloatWriter, n, some int64) error {
	for at := int64(0); at < n; at += some {
		k := min(some, n-at)
		d.x, d.transposed = resized(d.x, d.lines*k), resized(d.transposed, d.lines*k)
		d.dequantize(0, d.lines, at, k)
		kernel.Transpose(d.transposed, d.x, int(d.lines), int(k))
		if err := w.Flush(ctx, &d.transposed); err != nil {
			return err
		}
	}
	return nil
}

// dequantize writes a part of the panel into x.
func (d *blockDequantizer) dequantize(line, lines, at, width int64) {
	p, block := d.panel, int64(d.Spec.Block)
	for i := range lines {
		x, q := d.x[i*width:][:width], d.quantized[(line+i)*p.width+at:][:width]
		if d.RowMajor() {
			first := (line+i)/block*p.scaleWidth + at
			kernel.DequantizeCols(x, q, d.values.signed, d.scale[first:][:width], d.zero[first:][:width])
			continue
		}
		for from := at; len(x) > 0; {
			n := min(block-from%block, int64(len(x)))
			d.dequantizeBlock(x[:n], q, (line+i)*p.scaleWidth+from/block)
			x, q, from = x[n:], q[n:], from+n
		}
	}
}

// dequantizeBlock dequantizes values that share the scale with this index.
func (d *blockDequantizer) dequantizeBlock(x []float32, q []byte, scale int64) {
	if d.points == nil {
		kernel.Dequantize(x, q[:len(x)], d.values.signed, d.scale[scale], d.zero[scale])
		return
	}
	for i := range x {
		x[i] = (float32(q[i]) - d.zeroPoint[scale]) * d.scale[scale]
	}
}

// packedLines are lines of values of 2, 4 or 8 bits, packed without gaps.
type packedLines struct {
	r            io.ReaderAt
	bits         int
	stride       int64 // from line to line
	signed       bool
	raw, shifted []byte
}

// read unpacks width values of each of some lines, one per byte.
func (p *packedLines) read(to []byte, line, lines, at, width int64) error {
	if width == p.stride {
		// Whole lines are contiguous: several of them are read at a time.
		some := max(1, ir.CopyBuffer/max(1, width))
		for i := int64(0); i < lines; i += some {
			if err := p.run(to[i*width:][:min(some, lines-i)*width], (line+i)*p.stride); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range lines {
		if err := p.run(to[i*width:][:width], (line+i)*p.stride+at); err != nil {
			return err
		}
	}
	return nil
}

// run unpacks consecutive values, from the one at first on.
func (p *packedLines) run(to []byte, first int64) error {
	perByte := int64(8 / p.bits)
	// A line may begin within a byte: lines are packed without gaps, except in the layout of MatMulNBits.
	skip := first % perByte
	n := int64(len(to)) + skip
	p.raw = resized(p.raw, int64(kernel.Packed(int(n), p.bits)))
	if err := ir.ReadFull(p.r, p.raw, first/perByte); err != nil {
		return err
	}
	if skip == 0 {
		kernel.Unpack(to, p.raw, p.bits, p.signed)
		return nil
	}
	p.shifted = resized(p.shifted, n)
	kernel.Unpack(p.shifted, p.raw, p.bits, p.signed)
	copy(to, p.shifted[skip:])
	return nil
}

// resized is s with n elements of any value.
func resized[T any](s []T, n int64) []T {
	if int64(cap(s)) < n {
		return make([]T, n)
	}
	return s[:n]
}
