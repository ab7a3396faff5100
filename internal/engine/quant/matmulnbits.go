package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// matMulNBitsOps is ONNX Runtime's MatMulNBits: A times weights of 2, 4 or 8 bits, with a scale and a zero point per block of rows in a
// column. Inputs A, B, scales, zero_points, g_idx, bias.
func matMulNBitsOps() []op.Op {
	return []op.Op{{
		Domain: microsoft, Type: "MatMulNBits", Since: 1,
		Shape: bitShape, Prepare: prepareBits, Work: bitWork, Run: multiplyBits,
	}}
}

// An nbitsMatrix is a K×N weight of a few bits. Columns are stored in panels of 16, in the layout of package gemm; each row of a panel is 16
// values, lowest bits first.
type nbitsMatrix struct {
	k, n, bits, block int
	quantized         []byte
	scale             []float32 // by panel, block of rows and column of the panel
	zero              []float32 // likewise
}

const panel = kernel.GemmPanel

// bitsOf reads the attributes.
func bitsOf(n *op.Node) (*nbitsMatrix, error) {
	b := &nbitsMatrix{k: int(n.Int("K", 0)), n: int(n.Int("N", 0)), bits: int(n.Int("bits", 4)), block: int(n.Int("block_size", 0))}
	const most = 1 << 31
	switch {
	case b.k < 1 || b.n < 1 || b.k > most || b.n > most:
		return nil, fmt.Errorf("attributes K and N are %d and %d, want positive lengths", b.k, b.n)
	case b.bits != 2 && b.bits != 4 && b.bits != 8:
		return nil, fmt.Errorf("attribute bits is %d, want 2, 4 or 8", b.bits)
	case b.block < 16 || b.block > most || b.block&(b.block-1) != 0:
		return nil, fmt.Errorf("attribute block_size is %d, want a power of two from 16", b.block)
	}
	return b, nil
}

func (b *nbitsMatrix) blocks() int { return (b.k + b.block - 1) / b.block }

func (b *nbitsMatrix) panels() int { return (b.n + panel - 1) / panel }

// blob is the size in bytes of a block of one column, zeroBytes that of a column's zero points.
func (b *nbitsMatrix) blob() int { return b.block * b.bits / 8 }

func (b *nbitsMatrix) zeroBytes() int { return (b.blocks()*b.bits + 7) / 8 }

// rowBytes is the size in bytes of a row of a panel.
func (b *nbitsMatrix) rowBytes() int { return panel * b.bits / 8 }

// size is the memory of the packed matrix, of its scales and of its zero points.
func (b *nbitsMatrix) size() (quantized, each int64) {
	return int64(b.panels()) * int64(b.k) * int64(b.rowBytes()), 4 * int64(b.panels()) * int64(b.blocks()) * panel
}

func bitShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	b, err := bitsOf(n)
	if err != nil {
		return nil, err
	}
	if err := need(in, input{0, "A"}, input{1, "B"}, input{2, "scales"}); err != nil {
		return nil, err
	}
	a := in[0]
	if a.Kind != ir.Dense || !a.DType.IsFloat() || a.DType == ir.Double || len(a.Shape) == 0 || a.Shape[len(a.Shape)-1] != int64(b.k) {
		return nil, fmt.Errorf("input A is %s, want floats with rows of %d", a, b.k)
	}
	if err := b.check(in); err != nil {
		return nil, err
	}
	shape := append(append([]int64(nil), a.Shape[:len(a.Shape)-1]...), int64(b.n))
	s := ir.Spec{DType: a.DType, Shape: shape}
	return []ir.Spec{s}, s.Valid()
}

// check compares the constant inputs with the attributes.
func (b *nbitsMatrix) check(in []*ir.Array) error {
	if quantized := in[1]; quantized.DType != ir.Uint8 || quantized.Elems() != int64(b.n)*int64(b.blocks())*int64(b.blob()) {
		return fmt.Errorf("input B is %s, want uint8[%d,%d,%d]", quantized, b.n, b.blocks(), b.blob())
	}
	count := int64(b.n) * int64(b.blocks())
	if s := in[2]; !s.DType.IsFloat() || s.DType == ir.Double || s.Elems() != count {
		return fmt.Errorf("input scales is %s, want %d floats", s, count)
	}
	if z := op.Opt(in, 3); z != nil {
		packed := z.DType == ir.Uint8 && z.Elems() == int64(b.n)*int64(b.zeroBytes())
		if whole := z.DType.IsFloat() && z.DType != ir.Double && z.Elems() == count; !packed && !whole {
			return fmt.Errorf("input zero_points is %s, want uint8[%d] or %d floats", z, b.n*b.zeroBytes(), count)
		}
	}
	if op.Opt(in, 4) != nil {
		return fmt.Errorf("input g_idx is not supported: order the rows of B by group")
	}
	if bias := op.Opt(in, 5); bias != nil && (bias.DType != in[0].DType || bias.Elems() != int64(b.n)) {
		return fmt.Errorf("input bias is %s, want one value for each of %d columns", bias, b.n)
	}
	return nil
}

// prepareBits prepacks constant inputs. Other inputs are packed in every run.
func prepareBits(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	b, err := bitsOf(n)
	if err != nil {
		return nil, err
	}
	p := &op.Prepared{State: b}
	quantized, each := b.size()
	for i := 1; i <= 3 && i < len(in); i++ {
		if in[i] == nil {
			continue
		}
		size := each
		if i == 1 {
			size = quantized
		}
		b.fill(pool, i, in[i], ir.AlignedBytes(size))
		p.Bytes, p.Drops = p.Bytes+size, append(p.Drops, i)
	}
	if len(p.Drops) == 0 {
		return nil, nil
	}
	return p, nil
}

// fill packs input i into panels, in this memory.
func (b *nbitsMatrix) fill(pool *op.Pool, i int, a *ir.Array, memory []byte) {
	switch i {
	case 1:
		b.quantized = memory
		pool.For(b.panels(), func(j int) { b.packColumn(a.Data, j) })
	case 2:
		b.scale = kernel.Words[float32](memory)
		all := make([]float32, a.Elems())
		readFloats(all, a, 0)
		b.spread(b.scale, func(col, block int) float32 { return all[col*b.blocks()+block] })
	case 3:
		b.zero = kernel.Words[float32](memory)
		if a.DType == ir.Uint8 {
			b.spread(b.zero, func(col, block int) float32 {
				return float32(elementAt(a.Data[col*b.zeroBytes():], block, b.bits))
			})
			return
		}
		all := make([]float32, a.Elems())
		readFloats(all, a, 0)
		b.spread(b.zero, func(col, block int) float32 { return all[col*b.blocks()+block] })
	}
}

// elementAt is element i of packed values.
func elementAt(quantized []byte, i, bits int) byte {
	at := i * bits
	return quantized[at/8] >> (at % 8) & (1<<bits - 1)
}

func (b *nbitsMatrix) packColumn(data []byte, j int) {
	to := part(b.quantized, j, b.k*b.rowBytes())
	clear(to)
	for col := range min(panel, b.n-j*panel) {
		column := part(data, j*panel+col, b.blocks()*b.blob())
		at := col * b.bits
		for k := range b.k {
			to[k*b.rowBytes()+at/8] |= elementAt(column, k, b.bits) << (at % 8)
		}
	}
}

// spread writes a value per block of a column.
func (b *nbitsMatrix) spread(to []float32, of func(col, block int) float32) {
	for j := range b.panels() {
		for block := range b.blocks() {
			row := part(to, j*b.blocks()+block, panel)
			clear(row)
			for col := range min(panel, b.n-j*panel) {
				row[col] = of(j*panel+col, block)
			}
		}
	}
}

// bitWork is the scratch memory of the product, of inputs that are not prepacked, and of float32 copies of 16-bit floats.
func bitWork(n *op.Node, in []*ir.Array, workers int) int64 {
	b, err := bitsOf(n)
	if err != nil {
		return 0
	}
	work := gemm.FloatWork(b.shape(in[0]), 1, workers, false)
	quantized, each := b.size()
	for i := 1; i <= 3; i++ {
		switch {
		case op.Opt(in, i) == nil || n.IsConst(i):
		case i == 1:
			work += aligned(quantized)
		default:
			work += aligned(each)
		}
	}
	if in[0].DType != ir.Float {
		s := b.shape(in[0])
		work += aligned(4*in[0].Elems()) + aligned(4*int64(s.M)*int64(s.N)) + aligned(4*int64(s.N))
	}
	return work
}

func (b *nbitsMatrix) shape(a *ir.Array) gemm.Shape {
	return gemm.Shape{M: int(op.Product(a.Shape[:len(a.Shape)-1])), N: b.n, K: b.k}
}

func multiplyBits(c *op.Call) error {
	if c.Out[0].Elems() == 0 {
		return nil
	}
	b, err := bitsOf(c.Node)
	if err != nil {
		return err
	}
	if prepared, ok := c.State.(*nbitsMatrix); ok {
		*b = *prepared
	}
	work := c.Work
	take := func(size int64) []byte {
		memory := work[:size:size]
		work = work[aligned(size):]
		return memory
	}
	quantized, each := b.size()
	for i, missing := range []bool{1: b.quantized == nil, 2: b.scale == nil, 3: b.zero == nil && c.Opt(3) != nil} {
		switch {
		case !missing:
		case i == 1:
			b.fill(c.Pool, i, c.In[i], take(quantized))
		default:
			b.fill(c.Pool, i, c.In[i], take(each))
		}
	}
	a, y, bias := b.operands(c, take)
	s := b.shape(c.In[0])
	p := gemm.FloatProduct{A: gemm.Rows(a, s.K), Panels: b.values, C: y, Stride: s.N}
	if bias != nil {
		p.Epilogue.Bias = gemm.Matrix[float32]{Data: bias, Col: 1}
	}
	gemm.Float(c.Pool, s, work, p)
	switch c.Out[0].DType {
	case ir.Float16:
		kernel.F16FromF32(ir.View[uint16](c.Out[0]), y)
	case ir.BFloat16:
		kernel.BF16FromF32(ir.View[uint16](c.Out[0]), y)
	}
	return nil
}

// operands are A, the result and the bias as float32.
func (b *nbitsMatrix) operands(c *op.Call, take func(size int64) []byte) (a, y, bias []float32) {
	if c.In[0].DType == ir.Float {
		if add := c.Opt(5); add != nil {
			bias = ir.View[float32](add)
		}
		return ir.View[float32](c.In[0]), ir.View[float32](c.Out[0]), bias
	}
	a = kernel.Words[float32](take(4 * c.In[0].Elems()))
	readFloats(a, c.In[0], 0)
	y = kernel.Words[float32](take(4 * c.Out[0].Elems()))
	if add := c.Opt(5); add != nil {
		bias = kernel.Words[float32](take(4 * int64(b.n)))
		readFloats(bias, add, 0)
	}
	return a, y, bias
}

// values writes a part of the matrix as (quantized value - zero point)·scale: see gemm.Panels.
func (b *nbitsMatrix) values(dst []float32, k0, k1, n0, _ int) {
	j := n0 / panel
	quantized := part(b.quantized, j, b.k*b.rowBytes())
	var middle [panel]float32
	for i := range middle {
		middle[i] = float32(int(1) << (b.bits - 1))
	}
	for k := k0; k < k1; {
		block := k / b.block
		next := min((block+1)*b.block, k1)
		zero := middle[:]
		if b.zero != nil {
			zero = part(b.zero, j*b.blocks()+block, panel)
		}
		rows := dst[(k-k0)*panel : (next-k0)*panel]
		kernel.DequantizePanel(rows, quantized[k*b.rowBytes():], b.bits, part(b.scale, j*b.blocks()+block, panel), zero)
		k = next
	}
}
