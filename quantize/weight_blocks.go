package quantize

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// chooseBlocks picks the form of a weight that is stored in blocks: behind DequantizeLinear for one product, in codes for
// lookups, for both if they agree, else one that runtimes fold. Both need codes that are turned, and columns of zero points
// made vectors: ONNX Runtime has no Transpose of 2 bits and no Reshape of 4.
func (w *weightOnly) chooseBlocks(v *ir.Value, us []*weightUse) *plan {
	if p := w.chooseBits(v, us); p != nil {
		return p
	}
	p := &plan{weight: &weight{base: v}, form: pass.Dequantize}
	var product, table *site
	for _, u := range us {
		if u.site == nil || !u.site.linear(v, ir.Float, ir.Float16) || u.site.side != gather && product != nil || w.dense != "" || w.misread(u.site) {
			return w.foldBlocks(v, us)
		}
		if u.site.side == gather {
			table = u.site
		} else {
			product = u.site
		}
		p.sites = append(p.sites, u.site)
	}
	var b *blocking
	switch size := int64(w.blocks.size()); {
	case !oneScope(v, p.sites) || table != nil && len(table.shape) != 2:
		return w.foldBlocks(v, us)
	case product == nil:
		if p.form = pass.GatherBlocks; w.blocks.bits == 8 {
			p.form = pass.GatherCodes
		}
		b = w.lying(table.shape[0], table.shape[1])
	case table == nil:
		b = w.blocks.blocking(product.shape[0], product.shape[1], size, false)
		b.lying, b.turn = product.transposed, product.transposed
	case !product.transposed || size > 0 && product.shape[0]%min(size, product.shape[0]) != 0 || w.blocks.bits == 2:
		return w.foldBlocks(v, us)
	default:
		b = w.blocks.blocking(product.shape[0], product.shape[1], size, false)
		b.lying = true
		if b.blocks() == 1 && b.hasZeros() && b.bits < 8 {
			return w.foldBlocks(v, us)
		}
		p.note("held twice at run time, as the lookup wants a byte for each code")
	}
	p.cd = w.blockCoding(v, p.sites[0].view(), b)
	return p
}

func (w *weightOnly) blockCoding(v *ir.Value, shape []int64, b *blocking) *coding {
	b.grid.Half = v.Const.DType == ir.Float16
	zeros := scheme{unsigned: b.grid.Low >= 0, symmetric: !b.hasZeros()}
	return &coding{buffers: w.buffers, t: v.Const, shape: shape, b: b, s: zeros, axis: -1}
}

// lying cuts n columns, the elements of each of which lie together, into blocks of equal size.
func (w *weightOnly) lying(n, rows int64) *blocking {
	b := w.blocks.blocking(rows, n, divisor(rows, int64(w.blocks.size())), w.dense != "")
	b.lying = true
	return b
}

// divisor is the largest divisor of n up to size, or n if that is far below size, or size is 0.
func divisor(n, size int64) int64 {
	for d := min(size, n); d > size/4; d-- {
		if n%d == 0 {
			return d
		}
	}
	return n
}

// foldBlocks stores v in blocks along its last axes, as few of them as hold a block.
func (w *weightOnly) foldBlocks(v *ir.Value, us []*weightUse) *plan {
	p := &plan{weight: &weight{base: v}, form: pass.CastMul}
	shape := v.Const.Shape
	rows, axis := int64(1), len(shape)
	for axis > 0 && (rows < int64(w.blocks.size()) || w.blocks.size() == 0 && axis > 1) {
		axis--
		rows *= shape[axis]
	}
	p.cd = w.blockCoding(v, shape, w.lying(v.Const.Elems()/max(1, rows), rows))
	if w.dense != "" {
		p.note("packed by hand, dense at run time: " + w.dense)
	}
	return p
}

// refuseBlocks is the reason why codes that are packed by hand cannot stand for v, or "".
func (p *plan) refuseBlocks() string {
	if b := p.cd.b; b != nil && b.packed() && !b.padded && b.rows*b.cols*int64(b.bits)%8 != 0 {
		return fmt.Sprintf("its %d codes of %d bits do not fill whole bytes, and this opset has no such type", b.rows*b.cols, b.bits)
	}
	return ""
}
