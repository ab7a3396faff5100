package sparse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// BSR stores the blocks of a matrix that hold any value.
type BSR struct {
	pass.Selection
	// Block is the shape of a block; the zero value is 16 by 16.
	Block Block `flag:"block" default:"16" usage:"side of a block in block CSR, or 'ROWSxCOLS'"`
}

var bsrMethod = method("bsr", "blocks that hold any value, of the matrix [first dimension, rest]", func() pass.Options {
	return &BSR{}
})

// Method describes the method.
func (BSR) Method() *pass.Method { return bsrMethod }

// Run implements pass.Options.
func (o BSR) Run(ctx context.Context, s *pass.Step) error {
	return (&sparsifier{forms: []sizer{newBSR}, block: o.Block}).sparsify(ctx, s)
}

// Block is the rows and columns of a block.
type Block = pass.BlockSize

type bsr struct {
	tensor
	rows, cols int64
	block      Block
	blocks     int64 // stored ones
}

func newBSR(m statistics, _ int64) (layout, string) { return bsrOf(m.tensor, m.block, m.blocks), "" }

func bsrOf(t tensor, block Block, blocks int64) bsr {
	rows, cols := t.matrix()
	return bsr{t, rows, cols, block, blocks}
}

// whole reports whether blocks cover the matrix without an edge.
func (l bsr) whole() bool { return l.rows%l.block.Rows == 0 && l.cols%l.block.Cols == 0 }

func (bsr) form() pass.Form { return pass.BSR }
func (bsr) sums() bool      { return false }
func (l bsr) label() string { return fmt.Sprintf("bsr%dx%d", l.block.Rows, l.block.Cols) }
func (l bsr) opset() int64  { return l.since(11, 20) }

// work is a stripe, its blocks' indices and what waits to be written.
func (l bsr) work() int64 {
	_, across := l.grid()
	return l.stripe()*l.block.Rows*l.size() + 8*across + 4*ir.CopyBuffer
}

// grid is the number of blocks down and across.
func (l bsr) grid() (down, across int64) { return l.block.Grid(l.rows, l.cols) }

// width is the number of columns of a row of blocks, those outside of the matrix included.
func (l bsr) width() int64 {
	_, across := l.grid()
	return across * l.block.Cols
}

func (l bsr) parts() []part {
	down, across := l.grid()
	return []part{
		{pass.Payload, ir.Spec{DType: l.DType, Shape: []int64{l.blocks, l.block.Rows, l.block.Cols}}},
		{pass.Indices, ir.Spec{DType: narrowest(down * across), Shape: []int64{l.blocks, 1}}},
	}
}

func (l bsr) build(b *builder, parts []*ir.Tensor) *ir.Value {
	down, across := l.grid()
	r, c := l.block.Rows, l.block.Cols
	empty := b.constantTensor(l.DType, l.element(), down*across, r, c)
	at := b.cast(b.part(parts[1]), ir.Int64) // ScatterND takes no other
	v := b.op("ScatterND", []*ir.Value{empty, at, b.part(parts[0])})
	v = b.reshape(v, down, across, r, c)
	// [down, across, rows, columns] to [down, rows, across, columns]: rows of blocks become rows of the matrix.
	v = b.op("Transpose", []*ir.Value{v}, ir.IntsAttr("perm", 0, 2, 1, 3))
	if !l.whole() {
		v = b.reshape(v, down*r, across*c)
		v = b.op("Slice", []*ir.Value{v, b.int64s(0, 0), b.int64s(l.rows, l.cols)})
	}
	return b.reshape(v, l.Shape...)
}

// stripeBytes bounds what is read of one row of blocks at a time.
const stripeBytes = 1 << 20

// stripe is how many columns of a row of blocks are handled at a time.
func (l bsr) stripe() int64 {
	one := l.block.Rows * l.block.Cols * l.size()
	return min(l.width(), max(1, stripeBytes/one)*l.block.Cols)
}

// eachBlock reads the dense tensor and hands over the blocks with any value, in order
// of their index. block has the element that is not stored turned into zero, and zeros outside of the matrix.
func (l bsr) eachBlock(ctx context.Context, in io.ReaderAt, do func(index int64, block []byte) error) error {
	down, across := l.grid()
	wide, size := l.block.Cols*l.size(), l.size()
	buf := make([]byte, l.stripe()*l.block.Rows*size)
	block, empty := make([]byte, l.block.Rows*wide), make([]byte, l.block.Rows*wide)
	for y := range down {
		for x := int64(0); x < l.cols; x += l.stripe() {
			if err := ctx.Err(); err != nil {
				return err
			}
			row := min(l.stripe(), l.width()-x) * size
			if err := l.readStripe(in, buf[:l.block.Rows*row], y, x); err != nil {
				return err
			}
			for k := range row / wide {
				for r := range l.block.Rows {
					copy(block[r*wide:][:wide], buf[r*row+k*wide:])
				}
				// Empty after the exchange: blocks of the element that is not stored alone are left out, whatever element that
				// is.
				if bytes.Equal(block, empty) {
					continue
				}
				if err := do(y*across+x/l.block.Cols+k, block); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readStripe fills buf with the rows of blocks y from column x on, and zeros outside of the matrix.
func (l bsr) readStripe(in io.ReaderAt, buf []byte, y, x int64) error {
	row, step := int64(len(buf))/l.block.Rows, l.cols*l.size()
	off := y*l.block.Rows*step + x*l.size()
	piece, pieces := min(row, step-x*l.size()), min(l.block.Rows, l.rows-y*l.block.Rows)
	if row == step {
		piece, pieces = pieces*row, 1 // the rows are one piece
	}
	clear(buf)
	for i := range pieces {
		b := buf[i*row:][:piece]
		if err := ir.ReadFull(in, b, off+i*step); err != nil {
			return err
		}
		l.normalize(b)
	}
	return nil
}

func (l bsr) encode(ctx context.Context, in io.ReaderAt, out []io.Writer) error {
	dt := l.parts()[1].DType
	// Buffered, since blocks are small: each is a write of its own, to two outputs at once.
	payload, indices := bufio.NewWriterSize(out[0], int(min(ir.CopyBuffer, l.parts()[0].Bytes()))), bufio.NewWriter(out[1])
	err := l.eachBlock(ctx, in, func(index int64, block []byte) error {
		// eachBlock has exchanged the element that is not stored with zero; zeros outside of the matrix become that
		// element.
		xor(block, l.fill)
		if _, err := payload.Write(block); err != nil {
			return err
		}
		_, err := indices.Write(appendNumber(nil, dt, index))
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(payload.Flush(), indices.Flush())
}

// decode writes row by row: each row of blocks is loaded once if it is one stripe, and
// once for each of its rows if it is wider.
func (l bsr) decode(ctx context.Context, in []io.ReaderAt, out io.Writer) error {
	d := &blockDecoder{bsr: l, in: in, index: newNumbers(in[1], l.parts()[1].Spec)}
	d.buf = make([]byte, l.stripe()*l.block.Rows*l.size())
	down, _ := l.grid()
	for y := range down {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.rowOfBlocks(y, out); err != nil {
			return err
		}
	}
	// Indices after the last row of blocks stay pending, and missing ones leave blocks without a place.
	if d.pending || d.count < l.blocks {
		return errors.New("a block is outside of the matrix")
	}
	return nil
}

// A blockDecoder places blocks into stripes.
type blockDecoder struct {
	bsr
	in    []io.ReaderAt
	index *numbers
	buf   []byte

	at      []int64 // indices of the blocks in this row of blocks
	count   int64   // blocks in it and before
	next    int64   // an index that was read ahead
	pending bool
}

func (d *blockDecoder) rowOfBlocks(y int64, out io.Writer) error {
	if err := d.readRow(y); err != nil {
		return err
	}
	oneStripe := d.stripe() == d.width()
	for r := range min(d.block.Rows, d.rows-y*d.block.Rows) {
		for x := int64(0); x < d.cols; x += d.stripe() {
			row := min(d.stripe(), d.width()-x) * d.size()
			// Of one stripe buf has all rows of the blocks. Of several it has the last one only: they are loaded again for
			// each row, since the output is written in order.
			if !oneStripe || r == 0 {
				if err := d.writeStripe(y, x, row); err != nil {
					return err
				}
			}
			if _, err := out.Write(d.buf[r*row:][:min(row, (d.cols-x)*d.size())]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readRow reads the indices of the blocks in row y of blocks.
func (d *blockDecoder) readRow(y int64) error {
	_, across := d.grid()
	d.at = d.at[:0]
	for {
		if !d.pending {
			index, ok, err := d.index.next()
			if err != nil || !ok {
				return err
			}
			if index <= d.next && d.count > 0 {
				return errors.New("block indices do not ascend")
			}
			d.next, d.pending = index, true
		}
		// Read ahead: it is the first one of a later row of blocks.
		if d.next >= (y+1)*across {
			return nil
		}
		d.at = append(d.at, d.next)
		d.count++
		d.pending = false
	}
}

// writeStripe fills buf with the stripe from column x on, of row bytes a row.
func (d *blockDecoder) writeStripe(y, x, row int64) error {
	_, across := d.grid()
	wide := d.block.Cols * d.size()
	block := make([]byte, d.block.Rows*wide)
	buf := d.buf[:row*d.block.Rows]
	for i := range buf {
		buf[i] = d.fill
	}
	for i, index := range d.at {
		k := index - y*across - x/d.block.Cols
		if k < 0 || k*wide >= row {
			continue
		}
		// Payloads are in the order of the indices: that of this row's first block follows from the blocks before.
		nth := d.count - int64(len(d.at)) + int64(i)
		if err := ir.ReadFull(d.in[0], block, nth*int64(len(block))); err != nil {
			return err
		}
		for r := range d.block.Rows {
			copy(buf[r*row+k*wide:][:wide], block[r*wide:])
		}
	}
	return nil
}

func findBSR(ctx context.Context, f *finder, v *ir.Value) (layout, []*ir.Tensor) {
	turned, shape := f.reshapeInput(v)
	ends, edge := input(turned, "Slice", 2).Ints()
	if edge {
		turned, _ = f.reshapeInput(input(turned, "Slice", 0))
	}
	blocks, grid := f.reshapeInput(input(turned, "Transpose", 0))
	payload := f.constant(input(blocks, "ScatterND", 2))
	at := f.constant(input(input(blocks, "ScatterND", 1), "Cast", 0))
	if payload == nil || at == nil || len(payload.Shape) != 3 {
		return nil, nil
	}
	b := Block{Rows: payload.Shape[1], Cols: payload.Shape[2]}
	if min(b.Rows, b.Cols) < 1 || max(b.Rows, b.Cols) > pass.MaxBlock || len(grid) != 4 {
		return nil, nil
	}
	// Rows of the padded matrix. The end of the Slice, if there is one, is that without padding.
	t := tensor{Spec: ir.Spec{DType: payload.DType, Shape: shape}, rows: grid[0] * grid[2]}
	if len(ends) == 2 {
		t.rows = ends[0]
	}
	if t.rows < 1 || t.Elems()%t.rows != 0 {
		return nil, nil
	}
	var ok bool
	if t.fill, ok = f.fillByte(ctx, input(blocks, "ScatterND", 0)); !ok {
		return nil, nil
	}
	return bsrOf(t, b, payload.Shape[0]), []*ir.Tensor{payload, at}
}
