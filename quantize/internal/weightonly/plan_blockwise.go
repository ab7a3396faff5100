package weightonly

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// chooseBlocks picks the form of a blockwise weight: DequantizeLinear for one product, quantized lookups, both if their
// layouts agree, else a form that runtimes fold. Both require transposed values, and columns of zero points as vectors:
// ONNX Runtime has no Transpose of 2-bit and no Reshape of 4-bit types.
func (w *Quantizer) chooseBlocks(v *ir.Value, us []*weights.Use) *plan {
	if p := w.chooseBits(v, us); p != nil {
		return p
	}
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.Dequantize}
	var product, table *weights.Consumer
	// A second product folds the weight: of two DequantizeLinear with one quantized weight ONNX Runtime fuses none,
	// and computes both in every run.
	for _, u := range us {
		if u.Consumer == nil || !u.Consumer.StaysQuantized(v, ir.Float, ir.Float16) ||
			u.Consumer.Side != weights.Lookup && product != nil {
			return w.foldBlocks(v, us)
		}
		if u.Consumer.Side == weights.Lookup {
			table = u.Consumer
		} else {
			product = u.Consumer
		}
		p.Consumers = append(p.Consumers, u.Consumer)
	}
	var b *spec.BlockLayout
	switch {
	case !weights.SameScope(v, p.Consumers) || table != nil && len(table.Shape) != 2:
		return w.foldBlocks(v, us)
	case product == nil:
		p.form = pass.GatherQuantized
		if b = w.rowsInBytes(table); b == nil {
			p.form = pass.GatherBlocks(w.Blocks.Bits)
			b = w.tableBlocks(table)
		}
	case table == nil:
		return w.chooseProduct(v, product)
	default:
		if b = w.sharedLayout(product, table); b == nil {
			return w.foldBlocks(v, us)
		}
		p.note(pass.Reason{Code: pass.StoredTwice})
	}
	p.encode(w, v, p.Consumers[0].BaseShape(), b)
	return p
}

// chooseProduct picks the form of the matrix of one product: DequantizeLinear, or one that runtimes fold.
func (w *Quantizer) chooseProduct(v *ir.Value, product *weights.Consumer) *plan {
	p := &plan{Weight: &weights.Weight{Base: v, Consumers: []*weights.Consumer{product}}, form: pass.Dequantize}
	rows, cols := product.Shape[0], product.Shape[1]
	size := w.dequantizedBlock(rows)
	// Large matrices are at least as fast as float with 4-bit DequantizeLinear in every default runtime, also where
	// small ones are not.
	folds := w.denseReason != "" && !(w.large && size > 0 && rows%size == 0 && rows*cols >= pass.LargeWeight &&
		v.Const.DType == ir.Float)
	if folds || w.fusesIncorrectly(product) || size < 0 {
		p.form = pass.CastMul
		b := w.Blocks.layout(rows, cols, Divisor(rows, int64(w.Blocks.size())), w.packed)
		b.ColumnMajor = product.Transposed
		p.encode(w, v, product.BaseShape(), b)
		p.note(w.dense())
		return p
	}
	b := w.Blocks.layout(rows, cols, size, false)
	b.ColumnMajor, b.Transposed = product.Transposed, product.Transposed
	p.encode(w, v, product.BaseShape(), b)
	return p
}

// dequantizedBlock is the block size of DequantizeLinear for columns of some rows: the largest one up to the given one
// that the target supports, or -1 if there is none.
func (w *Quantizer) dequantizedBlock(rows int64) int64 {
	size := int64(w.Blocks.size())
	for ; size > 0 && size < rows && rows%size != 0 && !w.padding; size /= 2 {
		if size < 2*minBlock {
			return -1
		}
	}
	return size
}

// minBlock is the smallest block size of products.
const minBlock = 16

// sharedLayout is the layout of a weight of one product and lookups of its columns, nil if they have none in common.
func (w *Quantizer) sharedLayout(product, table *weights.Consumer) *spec.BlockLayout {
	rows, size := product.Shape[0], int64(w.Blocks.size())
	if !sameMatrix(product, table) || size > 0 && rows%min(size, rows) != 0 || w.Blocks.Bits == 2 || w.denseReason != "" ||
		w.packed || w.fusesIncorrectly(product) {
		return nil
	}
	b := w.Blocks.layout(rows, product.Shape[1], size, false)
	b.ColumnMajor, b.Transposed = product.Transposed, !product.Transposed
	// Its zero points are a vector, and ONNX Runtime has no Reshape of 4-bit types.
	if b.NumBlocks() == 1 && b.HasZeroPoints() && b.Bits < 8 {
		return nil
	}
	return b
}

// dense is the note about a product whose weight is dense at run time, if that is for lack of DequantizeLinear.
func (w *Quantizer) dense() pass.Reason {
	if w.denseReason == "" {
		return pass.Reason{}
	}
	return pass.Reason{Code: pass.DenseAtRunTime, Detail: w.denseReason}
}

// encode sets the encoding of v with layout b.
func (p *plan) encode(w *Quantizer, v *ir.Value, shape []int64, b *spec.BlockLayout) {
	b.Spec.Half, b.Spec.Feedback = v.Const.DType == ir.Float16, weights.InputsHaveMean(v)
	p.encoding = &spec.Blockwise{Buffers: w.buffers, Weight: v.Const, Shape: shape, Layout: b}
}

// tableBlocks divides the rows of a table into blocks of equal size.
func (w *Quantizer) tableBlocks(table *weights.Consumer) *spec.BlockLayout {
	rows, cols, columnMajor := table.Matrix()
	b := w.columnMajor(cols, rows)
	b.ColumnMajor, b.Transposed = columnMajor, !columnMajor
	return b
}

// columnMajor divides n contiguous columns into blocks of equal size.
func (w *Quantizer) columnMajor(n, rows int64) *spec.BlockLayout {
	b := w.Blocks.layout(rows, n, Divisor(rows, int64(w.Blocks.size())), w.packed)
	b.ColumnMajor = true
	return b
}

// Divisor is the largest divisor of n up to size, or n if that is less than a quarter of size, or size is 0.
func Divisor(n, size int64) int64 {
	for d := min(size, n); d > size/4; d-- {
		if n%d == 0 {
			return d
		}
	}
	return n
}

// foldBlocks divides v into blocks along its last axes, as few of them as hold a block.
func (w *Quantizer) foldBlocks(v *ir.Value, us []*weights.Use) *plan {
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.CastMul}
	shape := v.Const.Shape
	rows, axis := int64(1), len(shape)
	for axis > 0 && (rows < int64(w.Blocks.size()) || w.Blocks.size() == 0 && axis > 1) {
		axis--
		rows *= shape[axis]
	}
	p.encode(w, v, shape, w.columnMajor(v.Const.Elems()/max(1, rows), rows))
	if us[0].Consumer != nil {
		p.note(w.dense())
	}
	return p
}
