package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// matMulNBitsOps is ONNX Runtime's MatMulNBits: A times weights of 2, 4 or 8 bits, with a scale and a zero point per
// block of rows in a column. Inputs A, B, scales, zero_points, g_idx, bias.
func matMulNBitsOps() []op.Op {
	return []op.Op{{
		Domain: microsoft, Type: "MatMulNBits", Since: 1,
		Shape: bitShape, Prepare: prepareBits, States: []any{(*kernel.Quantized)(nil)}, Work: bitWork,
		Run: multiplyBits,
	}}
}

// bitsOf reads the attributes.
func bitsOf(n *op.Node) (*kernel.Quantized, error) {
	k, cols, bits, block := n.Int("K", 0), n.Int("N", 0), n.Int("bits", 4), n.Int("block_size", 0)
	const most = 1 << 31
	switch {
	case k < 1 || cols < 1 || k > most || cols > most:
		return nil, fmt.Errorf("attributes K and N are %d and %d, want positive lengths", k, cols)
	case bits != 2 && bits != 4 && bits != 8:
		return nil, fmt.Errorf("attribute bits is %d, want 2, 4 or 8", bits)
	// As ONNX Runtime requires.
	case block < 16 || block > most || block&(block-1) != 0:
		return nil, fmt.Errorf("attribute block_size is %d, want a power of two from 16", block)
	}
	return bitMatrix(int(k), int(cols), int(bits), int(block)), nil
}

// bitMatrix is a matrix without data. Zero points that are absent are in the middle.
func bitMatrix(k, n, bits, block int) *kernel.Quantized {
	return &kernel.Quantized{K: k, N: n, Bits: bits, Block: block, Zero: float32(int(1) << (bits - 1))}
}

// blob is the size in bytes of a block of one column in input B, zeroBytes that of a column's zero points in input
// zero_points.
func blob(b *kernel.Quantized) int { return b.Block * b.Bits / 8 }

func zeroBytes(b *kernel.Quantized) int { return (b.Blocks()*b.Bits + 7) / 8 }

// packedSize is the memory of input i, which is a, as a part of the packed matrix.
func packedSize(b *kernel.Quantized, i int, a *ir.Array) int64 {
	switch {
	case i == 1:
		return int64(b.ValueBytes())
	case a.DType == ir.Uint8:
		return int64(b.BlockValues())
	}
	return 4 * int64(b.BlockValues())
}

func bitShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	b, err := bitsOf(n)
	if err != nil {
		return nil, err
	}
	if err := requireInputs(in, input{0, "A"}, input{1, "B"}, input{2, "scales"}); err != nil {
		return nil, err
	}
	a := in[0]
	if a.Kind != ir.Dense || !a.DType.IsFloat() || a.DType == ir.Double || len(a.Shape) == 0 ||
		a.Shape[len(a.Shape)-1] != int64(b.K) {
		return nil, fmt.Errorf("input A is %s, want floats with rows of %d", a, b.K)
	}
	if err := checkBits(b, in); err != nil {
		return nil, err
	}
	shape := append(append([]int64(nil), a.Shape[:len(a.Shape)-1]...), int64(b.N))
	s := ir.Spec{DType: a.DType, Shape: shape}
	return []ir.Spec{s}, s.Valid()
}

// checkBits compares the constant inputs with the attributes.
func checkBits(b *kernel.Quantized, in []*ir.Array) error {
	if quantized := in[1]; quantized.DType != ir.Uint8 ||
		quantized.Elems() != int64(b.N)*int64(b.Blocks())*int64(blob(b)) {
		return fmt.Errorf("input B is %s, want uint8[%d,%d,%d]", quantized, b.N, b.Blocks(), blob(b))
	}
	count := int64(b.N) * int64(b.Blocks())
	if s := in[2]; !s.DType.IsFloat() || s.DType == ir.Double || s.Elems() != count {
		return fmt.Errorf("input scales is %s, want %d floats", s, count)
	}
	if z := op.Opt(in, 3); z != nil {
		packed := z.DType == ir.Uint8 && z.Elems() == int64(b.N)*int64(zeroBytes(b))
		if whole := z.DType.IsFloat() && z.DType != ir.Double && z.Elems() == count; !packed && !whole {
			return fmt.Errorf("input zero_points is %s, want uint8[%d] or %d floats", z, b.N*zeroBytes(b), count)
		}
	}
	if op.Opt(in, 4) != nil {
		return fmt.Errorf("input g_idx is not supported: order the rows of B by group")
	}
	if bias := op.Opt(in, 5); bias != nil && (bias.DType != in[0].DType || bias.Elems() != int64(b.N)) {
		return fmt.Errorf("input bias is %s, want one value for each of %d columns", bias, b.N)
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
	// Each on its own: scales may be computed in a run while the values are constant.
	for i := 1; i <= 3 && i < len(in); i++ {
		if in[i] == nil {
			continue
		}
		size := packedSize(b, i, in[i])
		packInput(b, pool, i, in[i], ir.AlignedBytes(size))
		p.Bytes, p.Drops = p.Bytes+size, append(p.Drops, i)
	}
	if len(p.Drops) == 0 {
		return nil, nil
	}
	return p, nil
}

// packInput packs input i in this memory.
func packInput(b *kernel.Quantized, pool *op.Pool, i int, a *ir.Array, memory []byte) {
	switch {
	case i == 1:
		b.Values = memory
		pool.For(b.Panels(), func(j int) { b.PackColumns(j, a.Data, b.Blocks()*b.Block, 0) })
	case i == 2:
		b.Scales = packFloats(b, a, memory)
	case a.DType == ir.Uint8:
		b.Zeros = memory
		kernel.SetBlocks(b, b.Zeros, func(col, block int) byte {
			return narrow.Element(a.Data[col*zeroBytes(b):],
				block, b.Bits)
		})
	default:
		b.Floats = packFloats(b, a, memory)
	}
}

// packFloats packs a float for each block of a column.
func packFloats(b *kernel.Quantized, a *ir.Array, memory []byte) []float32 {
	all, to := make([]float32, a.Elems()), kernel.Words[float32](memory)
	readFloats(all, a, 0)
	kernel.SetBlocks(b, to, func(col, block int) float32 { return all[col*b.Blocks()+block] })
	return to
}

// roundsToInt8 reports whether A is rounded to int8: accuracy_level is the least accurate type of A's elements that the
// model permits.
func roundsToInt8(n *op.Node, b *kernel.Quantized, in []*ir.Array) bool {
	// The value of level int8. Rows that are not whole blocks are multiplied in float32, which the level permits.
	const int8 = 4
	zero := op.Opt(in, 3)
	return n.Int("accuracy_level", 0) == int8 && b.Int8Block() > 0 && (zero == nil || zero.DType == ir.Uint8)
}

// int8Rows are rows for products with b, without data.
func int8Rows(b *kernel.Quantized) *kernel.Int8Rows {
	return &kernel.Int8Rows{K: b.K, Block: b.Int8Block()}
}

// bitWork is the scratch memory of the product, of rows of int8, of inputs that are not prepacked, and of float32
// copies of 16-bit floats.
func bitWork(n *op.Node, in []*ir.Array, workers int) int64 {
	b, err := bitsOf(n)
	if err != nil {
		return 0
	}
	s := bitProduct(b, in[0])
	work := gemm.FloatWork(s, 1, workers, false)
	for i := 1; i <= 3; i++ {
		if op.Opt(in, i) != nil && !n.IsConst(i) {
			work += aligned(packedSize(b, i, in[i]))
		}
	}
	if roundsToInt8(n, b, in) {
		values, each := int8Rows(b).Bytes(s.M)
		work += aligned(int64(values)) + 2*aligned(int64(each))
	}
	if in[0].DType != ir.Float {
		work += aligned(4*in[0].Elems()) + aligned(4*int64(s.M)*int64(s.N)) + aligned(4*int64(s.N))
	}
	return work
}

func bitProduct(b *kernel.Quantized, a *ir.Array) gemm.Shape {
	return gemm.Shape{M: int(op.Product(a.Shape[:len(a.Shape)-1])), N: b.N, K: b.K}
}

func multiplyBits(c *op.Call) error {
	if c.Out[0].Elems() == 0 {
		return nil
	}
	b, err := bitsOf(c.Node)
	if err != nil {
		return err
	}
	// A copy: inputs of this run are added to it, and several runs share the prepared one.
	if prepared, ok := c.State.(*kernel.Quantized); ok {
		*b = *prepared
	}
	work := c.Work
	take := func(size int64) []byte {
		memory := work[:size:size]
		work = work[aligned(size):]
		return memory
	}
	for i := 1; i <= 3; i++ {
		if c.Opt(i) != nil && !c.IsConst(i) {
			packInput(b, c.Pool, i, c.In[i], take(packedSize(b, i, c.In[i])))
		}
	}
	a, y, bias := bitOperands(b, c, take)
	s := bitProduct(b, c.In[0])
	p := gemm.FloatProduct{A: gemm.Rows(a, s.K), Quantized: b, C: y, Stride: s.N}
	// A token of a 1.2 B model of int4 in blocks of 32 takes 69 to 78 ms of processor time, in float32 188 to 190
	// (AVX2); the maximum error of a row times 2048×2048 random weights is 5.2e-3 of the largest result, in float32
	// 4.5e-7.
	if roundsToInt8(c.Node, b, c.In) {
		p.A, p.Int8 = gemm.Matrix[float32]{}, roundRows(c.Pool, b, a, s.M, take)
	}
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

// roundRows rounds the rows of A to int8.
func roundRows(pool *op.Pool, b *kernel.Quantized, a []float32, rows int,
	take func(size int64) []byte) *kernel.Int8Rows {
	r := int8Rows(b)
	values, each := r.Bytes(rows)
	r.Values = take(int64(values))
	r.Scales, r.Sums = kernel.Words[float32](take(int64(each))), kernel.Words[float32](take(int64(each)))
	pool.Rows(rows, chunk/b.K+1, func(from, to int) {
		for i := from; i < to; i++ {
			r.Set(i, part(a, i, b.K))
		}
	})
	return r
}

// bitOperands are A, the result and the bias as float32.
func bitOperands(b *kernel.Quantized, c *op.Call, take func(size int64) []byte) (a, y, bias []float32) {
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
		bias = kernel.Words[float32](take(4 * int64(b.N)))
		readFloats(bias, add, 0)
	}
	return a, y, bias
}
