package spec

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// A Rounder computes quantized values, scales and zero points of c from w, c.K rows by c.N columns of whole blocks. The
// first element of both is (row, col) of the weight.
type Rounder func(c *solve.Quantized, w []float32, row, col int) error

// A ScaleRule is how a Rounder finds the scales of blocks.
type ScaleRule uint8

// The rules for scales: ranges that cover the elements, those of least error with the norm of the block, and those of
// other searches.
const (
	Covering ScaleRule = iota
	LeastError
	Free
)

// A BlockLayout divides a weight, seen as a matrix of rows × cols, into blocks: consecutive rows of a column, which
// share a scale.
type BlockLayout struct {
	Rows, Cols      int64
	ColumnMajor     bool // the elements of a column are contiguous in the weight
	Transposed      bool // the quantized weight is the transpose of the weight
	Spec            solve.Spec
	Bits            int
	DType           ir.DType // quantized data type; Uint8 where values are packed into bytes
	ForNBits        bool     // the layout of MatMulNBits: each column has whole blocks, and whole bytes of zero points
	FloatZeroPoints bool     // zero points are floats
	Rounder         Rounder
	Scales          ScaleRule  // of Rounder
	Solved          *ir.Tensor // the dequantized weight, where Rounder returns what was solved before; else nil
	limit           PieceLimit
}

// NumBlocks is the number of blocks of a column.
func (b *BlockLayout) NumBlocks() int64 { return ceilDiv(b.Rows, int64(b.Spec.Block)) }

func ceilDiv(n, by int64) int64 { return (n + by - 1) / by }

// BytePacked reports whether bytes hold several values because the opset has no such data type.
func (b *BlockLayout) BytePacked() bool { return b.DType.Bits() != int64(b.Bits) }

// RowMajor reports whether the quantized weight is stored row-major.
func (b *BlockLayout) RowMajor() bool { return b.ColumnMajor == b.Transposed }

// HasZeroPoints reports whether zero points are stored: all but implied ones. With session.x64quantprecision (for CPUs
// without VNNI) ONNX Runtime converts int8 weights to uint8, and then requires zero points of per-channel and blockwise
// weights.
func (b *BlockLayout) HasZeroPoints() bool {
	// MatMulNBits and unpacking nodes imply the middle level; DequantizeLinear implies 0, which unsigned values do
	// not have in the middle.
	return !b.Spec.Symmetric || !b.ForNBits && !b.BytePacked() && (b.Spec.Low >= 0 || b.Bits == 8)
}

// ImpliedZeroPoint is the zero point of all blocks of a layout that stores none.
func (b *BlockLayout) ImpliedZeroPoint() int32 { return (b.Spec.Low + b.Spec.High + 1) / 2 }

// packedZeroPoints is the number of zero points from which bytes hold several ones: nodes that unpack them are smaller
// then.
const packedZeroPoints = 1024

// ZeroPointsPacked reports whether bytes hold several zero points, as they do quantized values.
func (b *BlockLayout) ZeroPointsPacked() bool {
	return b.BytePacked() && !b.ForNBits && b.HasZeroPoints() && b.NumBlocks()*b.Cols >= packedZeroPoints
}

func (b *BlockLayout) quantizedShape(shape []int64) []int64 {
	switch {
	case b.ForNBits:
		return []int64{b.Cols, b.NumBlocks(), int64(b.Spec.Block*b.Bits) / 8}
	case b.BytePacked():
		return []int64{ceilDiv(b.Rows*b.Cols, int64(8/b.Bits))}
	case b.Transposed:
		return []int64{shape[1], shape[0]}
	}
	return shape
}

// specs are the stored tensors of a weight of some shape: quantized values, scales and zero points.
func (b *BlockLayout) specs(name string, shape []int64) []ir.Spec {
	out := []ir.Spec{
		{Name: name, DType: b.DType, Shape: b.quantizedShape(shape)},
		{Name: name, DType: b.scaleDType(), Shape: b.scaleShape()},
	}
	if b.HasZeroPoints() {
		dt, shape := b.zeroPointSpec()
		out = append(out, ir.Spec{Name: name, DType: dt, Shape: shape})
	}
	return out
}

func (b *BlockLayout) bytes(shape []int64) (n int64) {
	for _, s := range b.specs("", shape) {
		n += s.Bytes()
	}
	return n
}

// Blockwise is a weight whose blocks share scales.
type Blockwise struct {
	Weight  *ir.Tensor // the float weight
	Shape   []int64    // as its consumers see it
	Layout  *BlockLayout
	Buffers *BufferPool // shared by the encodings of a run; may be nil
}

// Bytes is the size of the stored tensors.
func (c *Blockwise) Bytes() int64 { return c.Layout.bytes(c.Shape) }

// Check quantizes the weight without output, and returns a *pass.Unfit if no scales represent its values.
func (c *Blockwise) Check(ctx context.Context, in io.ReaderAt) error {
	return checkRecipe(ctx, c.Recipe(), in)
}

// Same reports whether e quantizes an equal weight to equal values.
func (c *Blockwise) Same(e Encoding) bool {
	o, ok := e.(*Blockwise)
	return ok && c.Layout.same(o.Layout) && slices.Equal(c.Shape, o.Shape)
}

// Recipe computes quantized values, scales and zero points. It reads the weight once.
func (c *Blockwise) Recipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "quantize",
		In:   []*ir.Tensor{c.Weight},
		Out:  c.Layout.specs(c.Weight.Name, c.Shape),
		Work: c.chunk()*10 + c.chunkBlocks()*20,
		Run:  c.run,
	}
}

// chunk is the maximum number of elements that are quantized at a time, in whole blocks.
func (c *Blockwise) chunk() int64 { return c.chunkRows() * c.chunkCols() }

func (c *Blockwise) chunkRows() int64 {
	b := c.Layout
	// Values are written column by column: a chunk has whole columns.
	if !b.RowMajor() {
		return b.Rows
	}
	block := int64(b.Spec.Block)
	return min(b.Rows, max(1, b.limit.Elems()/max(1, b.Cols)/block)*block)
}

// chunkBlocks is the maximum number of blocks of a chunk.
func (c *Blockwise) chunkBlocks() int64 {
	return ceilDiv(c.chunkRows(), int64(c.Layout.Spec.Block)) * c.chunkCols()
}

// chunkCols is a number of columns that kernels process together.
func (c *Blockwise) chunkCols() int64 {
	b, most := c.Layout, c.Layout.limit.Elems()
	switch {
	case b.RowMajor():
		return b.Cols
	case !b.ColumnMajor:
		most = b.limit.panel() // rows are read in parts
	}
	// Whole tiles of the kernels, which process this many columns at once.
	return min(b.Cols, max(kernel.BlockCols, most/max(1, b.Rows)/kernel.BlockCols*kernel.BlockCols))
}

func (c *Blockwise) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	r := &blockQuantizer{Blockwise: c, ctx: ctx, floats: pass.NewFloats(in[0], c.Weight.DType), out: out,
		values: NewPackedWriter(out[OutQuantized], c.Layout.Bits)}
	if c.Layout.HasZeroPoints() {
		r.zeroPoints = NewPackedWriter(out[OutZeroPoints], c.Layout.zeroPointBits())
	}
	free := r.allocate()
	defer free()
	// Chunks are in the order of the stored tensors, so that scales and zero points are written with them: held until
	// all values are, they would grow with the weight.
	for row := int64(0); row < c.Layout.Rows; row += c.chunkRows() {
		for col := int64(0); col < c.Layout.Cols; col += c.chunkCols() {
			if err := r.quantizeChunk(row, min(c.chunkRows(), c.Layout.Rows-row), col,
				min(c.chunkCols(), c.Layout.Cols-col)); err != nil {
				return err
			}
		}
	}
	// At the end, as dead blocks are compared with the largest magnitude of the whole weight.
	if err := r.unfit(c.Weight.Name); err != nil {
		return err
	}
	if r.zeroPoints != nil {
		if err := r.zeroPoints.Flush(); err != nil {
			return err
		}
	}
	return r.values.Flush()
}

// A blockQuantizer quantizes one weight in chunks.
type blockQuantizer struct {
	*Blockwise
	magnitudes
	ctx                  context.Context
	floats               *pass.Floats
	out                  []io.Writer
	values, zeroPoints   *PackedWriter
	scale                []float32 // of the chunk, as stored
	zeroPoint            []byte    // likewise
	floatZeroPoint       []float32 // likewise, where zero points are floats
	x, transposed        []float32
	quantized, reordered []byte
	feedback             solve.Feedback // from chunk to chunk of rows
}

// allocate takes the buffers of a chunk from the pool, and returns a function that frees them.
func (r *blockQuantizer) allocate() func() {
	n := r.chunk()
	var free [4]func()
	r.x, free[0] = r.Buffers.takeFloats(n)
	r.quantized, free[1] = r.Buffers.takeBytes(n)
	free[2], free[3] = func() {}, func() {}
	if r.Layout.ColumnMajor {
		r.transposed, free[2] = r.Buffers.takeFloats(n)
	}
	if r.Layout.ColumnMajor || !r.Layout.RowMajor() {
		r.reordered, free[3] = r.Buffers.takeBytes(n)
	}
	return func() {
		for _, f := range free {
			f()
		}
	}
}

// quantizeChunk quantizes rows × cols elements from (row, col) on.
func (r *blockQuantizer) quantizeChunk(row, rows, col, cols int64) error {
	w, err := r.read(row, rows, col, cols)
	if err != nil {
		return err
	}
	// As bits: those of magnitudes have their order, with infinities and NaN above all numbers.
	peak := kernel.AbsMaxBits(w)
	if reason := NotFinite(peak); !reason.None() {
		return &pass.Unfit{Tensor: r.Weight.Name, Reason: reason}
	}
	r.add(math.Float32frombits(peak), false)
	quantized := &solve.Quantized{K: int(rows), N: int(cols), Spec: r.Layout.Spec, Values: r.quantized[:rows*cols]}
	n := ceilDiv(rows, int64(r.Layout.Spec.Block)) * cols
	quantized.Scale, quantized.Zero = make([]float32, n), make([]int32, n)
	if r.Layout.FloatZeroPoints {
		quantized.Point = make([]float32, n)
	}
	// Error feedback along columns goes on in the next chunk of rows.
	if rows < r.Layout.Rows { // of all columns
		r.feedback.Below = int(r.Layout.Rows - row - rows)
		quantized.Feedback = &r.feedback
	}
	if err := r.Layout.Rounder(quantized, w, int(row), int(col)); err != nil {
		return err
	}
	// Before scales are written and values are packed: a dead block gets scale 1 and zeros.
	r.clearDead(quantized, w)
	if err := r.writeQParams(quantized); err != nil {
		return err
	}
	q := quantized.Values
	if !r.Layout.RowMajor() {
		kernel.TransposeBytes(r.reordered[:len(q)], q, int(rows), int(cols))
		q = r.reordered[:len(q)]
	}
	if r.Layout.ForNBits {
		q = padColumns(q, rows, int64(r.Layout.Spec.Block))
	}
	if err := r.values.Write(q); err != nil {
		return err
	}
	return r.ctx.Err()
}

// clearDead makes blocks of w that have no scale zeros.
func (r *blockQuantizer) clearDead(c *solve.Quantized, w []float32) {
	for at, s := range c.Scale {
		// An infinite scale is no dead block: writeQParams refuses the weight.
		if s = max(s, -s); IsNormal(s) || s >= 1 {
			continue
		}
		row, col, peak := at/c.N*c.Spec.Block, at%c.N, float32(0)
		for i := row; i < min(row+c.Spec.Block, c.K); i++ {
			peak = max(peak, w[i*c.N+col], -w[i*c.N+col])
			c.Values[i*c.N+col] = byte(r.Layout.ImpliedZeroPoint())
		}
		r.add(peak, true)
		c.Scale[at], c.Zero[at] = 1, r.Layout.ImpliedZeroPoint()
		if c.Point != nil {
			c.Point[at] = float32(r.Layout.ImpliedZeroPoint())
		}
	}
}

// read returns a chunk as rows of cols.
func (r *blockQuantizer) read(row, rows, col, cols int64) ([]float32, error) {
	x := r.x[:rows*cols]
	if !r.Layout.ColumnMajor {
		return x, r.readRows(x, row, rows, col, cols)
	}
	for j := int64(0); j < cols; j++ {
		if rows == r.Layout.Rows {
			if err := r.floats.Read(x, col*rows); err != nil {
				return nil, err
			}
			break
		}
		if err := r.floats.Read(x[j*rows:][:rows], (col+j)*r.Layout.Rows+row); err != nil {
			return nil, err
		}
	}
	// Rounders take rows, whose columns are independent.
	kernel.Transpose(r.transposed[:len(x)], x, int(cols), int(rows))
	return r.transposed[:len(x)], nil
}

// readRows reads rows, or a part of each, of a row-major weight.
func (r *blockQuantizer) readRows(x []float32, row, rows, col, cols int64) error {
	if cols == r.Layout.Cols {
		return r.floats.Read(x, row*cols)
	}
	for i := range rows {
		if err := r.floats.Read(x[i*cols:][:cols], (row+i)*r.Layout.Cols+col); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether b and o quantize equal weights to values that can replace each other: with or without error
// feedback.
func (b *BlockLayout) same(o *BlockLayout) bool {
	// Feedback follows the inputs of a weight's products; equal weights share one rounding all the same.
	spec := o.Spec
	spec.Feedback = b.Spec.Feedback
	return b.Rows == o.Rows && b.Cols == o.Cols && b.ColumnMajor == o.ColumnMajor && b.Transposed == o.Transposed &&
		b.ForNBits == o.ForNBits &&
		b.FloatZeroPoints == o.FloatZeroPoints && b.Spec == spec && b.DType == o.DType
}
