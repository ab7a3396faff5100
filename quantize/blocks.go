package quantize

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// A rounder fills in the codes, scales and zero points of c for w, c.K rows by c.N columns: whole blocks, or all rows if
// it says so.
type rounder struct {
	round func(c *solve.Codes, w []float32) error
	whole bool // it wants all rows of a column at once
}

// A blocking says how a weight, seen as a matrix of rows × cols, is cut into blocks: stretches of rows in one column,
// that share a scale.
type blocking struct {
	rows, cols int64
	lying      bool // a column's elements lie together in the weight
	turn       bool // the codes are stored the other way round than the weight
	grid       solve.Grid
	bits       int
	dtype      ir.DType // of the codes; Uint8 where they are packed by hand
	padded     bool     // each column takes whole blocks, and whole bytes of zero points, as MatMulNBits wants it
	real       bool     // zero points are any numbers
	by         rounder
}

// blocks is the number of scales of a column.
func (b *blocking) blocks() int64 { return ceil(b.rows, int64(b.grid.Block)) }

func ceil(n, by int64) int64 { return (n + by - 1) / by }

// packed reports whether the file's types do not have the codes: bytes hold several.
func (b *blocking) packed() bool { return b.dtype.Bits() != int64(b.bits) }

// standing reports whether the codes are stored row by row, rows of cols.
func (b *blocking) standing() bool { return b.lying == b.turn }

// hasZeros reports whether zero points are stored: all but those that codes have anyway. ONNX Runtime, told to be precise without VNNI
// (session.x64quantprecision), makes int8 weights uint8, and then reads per channel or block only those with zero points.
func (b *blocking) hasZeros() bool {
	return !b.grid.Symmetric || !b.padded && (b.grid.Low >= 0 || b.bits == 8)
}

func (b *blocking) codeShape(shape []int64) []int64 {
	switch {
	case b.padded:
		return []int64{b.cols, b.blocks(), int64(b.grid.Block*b.bits) / 8}
	case b.packed():
		return []int64{ceil(b.rows*b.cols, int64(8/b.bits))}
	case b.turn:
		return []int64{shape[1], shape[0]}
	}
	return shape
}

// specs are codes, scales and zero points of a weight of some shape, as they are stored.
func (b *blocking) specs(name string, shape []int64) []ir.Spec {
	out := []ir.Spec{
		{Name: name, DType: b.dtype, Shape: b.codeShape(shape)},
		{Name: name, DType: b.scaleType(), Shape: b.scaleShape()},
	}
	if b.hasZeros() {
		dt, shape := b.zeros()
		out = append(out, ir.Spec{Name: name, DType: dt, Shape: shape})
	}
	return out
}

func (b *blocking) bytes(shape []int64) (n int64) {
	for _, s := range b.specs("", shape) {
		n += s.Bytes()
	}
	return n
}

// blockRecipe describes how codes and scales of blocks are computed. Each weight is read once.
func (c *coding) blockRecipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "quantize",
		In:   []*ir.Tensor{c.t},
		Out:  c.b.specs(c.t.Name, c.shape),
		Work: c.chunk()*10 + c.b.blocks()*c.b.cols*15,
		Run:  c.runBlocks,
	}
}

// chunk is the most elements that are rounded at a time: what is stored together, in whole blocks.
func (c *coding) chunk() int64 { return c.chunkRows() * c.chunkCols() }

func (c *coding) chunkRows() int64 {
	b := c.b
	if !b.standing() || b.by.whole {
		return b.rows
	}
	block := int64(b.grid.Block)
	return min(b.rows, max(1, pass.Block/max(1, b.cols)/block)*block)
}

// chunkCols is a number of columns whose codes, if they lie together, are whole bytes.
func (c *coding) chunkCols() int64 {
	b, most := c.b, int64(pass.Block)
	switch {
	case b.standing() || b.by.whole:
		return b.cols
	case !b.lying:
		most = panelElems // rows are read in pieces
	}
	return min(b.cols, max(kernel.BlockCols, most/max(1, b.rows)/kernel.BlockCols*kernel.BlockCols))
}

func (c *coding) runBlocks(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	r := &blockRun{coding: c, ctx: ctx, f: pass.NewFloats(in[0], c.t.DType), out: out[outCodes]}
	n := c.b.blocks() * c.b.cols
	r.scale = make([]float32, n)
	if c.b.real {
		r.point = make([]float32, n)
	} else {
		r.zero = make([]byte, n)
	}
	free := r.take()
	defer free()
	for row := int64(0); row < c.b.rows; row += c.chunkRows() {
		for col := int64(0); col < c.b.cols; col += c.chunkCols() {
			if err := r.part(row, min(c.chunkRows(), c.b.rows-row), col, min(c.chunkCols(), c.b.cols-col)); err != nil {
				return err
			}
		}
	}
	if err := r.write(out[outScales], r.scale); err != nil || !c.b.hasZeros() {
		return err
	}
	if c.b.real {
		return r.write(out[outZeros], r.point)
	}
	_, err := out[outZeros].Write(r.zeros())
	return err
}

// pack packs codes into to, which may be codes.
func (b *blocking) pack(to, codes []byte, bits int) []byte {
	to = to[:kernel.Packed(len(codes), bits)]
	kernel.Pack(to, codes, bits)
	return to
}

// A blockRun rounds one weight, a chunk after the other.
type blockRun struct {
	*coding
	ctx       context.Context
	f         *pass.Floats
	out       io.Writer
	scale     []float32 // of the whole weight, as stored
	zero      []byte    // likewise
	point     []float32 // likewise, where zero points are real numbers
	x, turned []float32
	code, lay []byte
}

// take gets the buffers of a chunk, and returns what gives them back.
func (r *blockRun) take() func() {
	n := r.chunk()
	var free [4]func()
	r.x, free[0] = r.buffers.takeFloats(n)
	r.code, free[1] = r.buffers.takeBytes(n)
	free[2], free[3] = func() {}, func() {}
	if r.b.lying {
		r.turned, free[2] = r.buffers.takeFloats(n)
	}
	if r.b.lying || !r.b.standing() {
		r.lay, free[3] = r.buffers.takeBytes(n)
	}
	return func() {
		for _, f := range free {
			f()
		}
	}
}

// part rounds rows × cols elements from (row, col) on.
func (r *blockRun) part(row, rows, col, cols int64) error {
	w, err := r.read(row, rows, col, cols)
	if err != nil {
		return err
	}
	if reason := nonFinite(kernel.AbsMaxBits(w)); reason != "" {
		return &pass.Unfit{Tensor: r.t.Name, Reason: reason}
	}
	codes := &solve.Codes{K: int(rows), N: int(cols), Grid: r.b.grid, Code: r.code[:rows*cols]}
	n := ceil(rows, int64(r.b.grid.Block)) * cols
	codes.Scale, codes.Zero = make([]float32, n), make([]int32, n)
	if r.b.real {
		codes.Point = make([]float32, n)
	}
	if err := r.b.by.round(codes, w); err != nil {
		return err
	}
	if err := r.place(codes, row/int64(r.b.grid.Block), col); err != nil {
		return err
	}
	q := codes.Code
	if !r.b.standing() {
		kernel.TransposeBytes(r.lay[:len(q)], q, int(rows), int(cols))
		q = r.lay[:len(q)]
	}
	if r.b.padded {
		q = r.b.packColumns(q, rows, int64(r.b.grid.Block))
	} else {
		q = r.b.pack(q, q, r.b.bits)
	}
	if _, err := r.out.Write(q); err != nil {
		return err
	}
	return r.ctx.Err()
}

// read returns a part as rows of cols.
func (r *blockRun) read(row, rows, col, cols int64) ([]float32, error) {
	x := r.x[:rows*cols]
	if !r.b.lying {
		return x, r.pieces(x, row, rows, col, cols)
	}
	for j := int64(0); j < cols; j++ {
		if rows == r.b.rows {
			if err := r.f.Read(x, col*rows); err != nil {
				return nil, err
			}
			break
		}
		if err := r.f.Read(x[j*rows:][:rows], (col+j)*r.b.rows+row); err != nil {
			return nil, err
		}
	}
	kernel.Transpose(r.turned[:len(x)], x, int(cols), int(rows))
	return r.turned[:len(x)], nil
}

// pieces reads rows, or a part of each, that lie in the weight as they are wanted.
func (r *blockRun) pieces(x []float32, row, rows, col, cols int64) error {
	if cols == r.b.cols {
		return r.f.Read(x, row*cols)
	}
	for i := range rows {
		if err := r.f.Read(x[i*cols:][:cols], (row+i)*r.b.cols+col); err != nil {
			return err
		}
	}
	return nil
}

// like reports whether b and o store equal weights as equal codes.
func (b *blocking) like(o *blocking) bool {
	if b == nil || o == nil {
		return b == o
	}
	return b.rows == o.rows && b.cols == o.cols && b.lying == o.lying && b.turn == o.turn && b.padded == o.padded && b.real == o.real && b.grid == o.grid && b.dtype == o.dtype
}
