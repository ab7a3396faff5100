package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// An expertLayer is one linear layer of all experts: count matrices of n rows, the outputs, and k columns.
type expertLayer struct {
	count, n, k               int
	bits, block               int // of quantized weights
	weight, scale, zero, bias *ir.Array
	prepacked, prepackedZero  bool                // of quantized weights: those that Prepare got
	packed                    []*kernel.Quantized // by expert
}

// layerOf is a layer of a node, nil for FC3 that is absent.
func layerOf(n *op.Node, in []*ir.Array, quantized bool, i int) (*expertLayer, error) {
	at := layerInputs[quantized][i]
	name := fmt.Sprintf("fc%d_experts_weights", i+1)
	if i == gate && op.Opt(in, at.weight) == nil {
		return nil, nil
	}
	w, err := op.Tensor(in, at.weight, name)
	if err != nil {
		return nil, err
	}
	if len(w.Shape) != 3 || w.Elems() == 0 {
		return nil, fmt.Errorf("input %s is %s, want experts × outputs × inputs", name, w)
	}
	l := &expertLayer{count: int(w.Shape[0]), n: int(w.Shape[1]), k: int(w.Shape[2]), weight: w,
		bias: op.Opt(in, at.bias)}
	if !quantized && (!w.DType.IsFloat() || w.DType == ir.Double) {
		return nil, fmt.Errorf("input %s is %s, want floats", name, w)
	}
	if l.bias != nil && !slices.Equal(l.bias.Shape, w.Shape[:2]) {
		return nil, fmt.Errorf("input fc%d_experts_bias is %s, want shape %v", i+1, l.bias, w.Shape[:2])
	}
	if !quantized {
		return l, nil
	}
	l.scale, l.zero = op.Opt(in, at.scale), op.Opt(in, at.zero)
	l.prepacked = n.IsConst(at.weight) && n.IsConst(at.scale)
	l.prepackedZero = l.prepacked && n.IsConst(at.zero)
	l.bits = int(n.Int(fmt.Sprintf("fc%d_expert_weight_bits", i+1), n.Int("expert_weight_bits", 4)))
	return l, l.setBlocks(n.Int("block_size", 0), i+1)
}

// setBlocks checks quantized weights with their scales and zero points.
func (l *expertLayer) setBlocks(block int64, number int) error {
	if l.weight.DType != ir.Uint8 || l.bits != 2 && l.bits != 4 && l.bits != 8 {
		return fmt.Errorf("input fc%d_experts_weights is %s of %d bits, want uint8 of 2, 4 or 8 bits", number,
			l.weight, l.bits)
	}
	if err := (ir.Spec{DType: ir.Uint8, Shape: []int64{int64(l.count), int64(l.n),
		int64(l.k) * 8}}).Valid(); err != nil {
		return fmt.Errorf("input fc%d_experts_weights: %w", number, err)
	}
	// A byte of the weights has several columns.
	l.k *= 8 / l.bits
	scale := []int64{int64(l.count), int64(l.n)}
	zero := []int64{int64(l.count), (int64(l.n*l.bits) + 7) / 8}
	l.block = l.k
	if block > 0 {
		if block < 16 || block&(block-1) != 0 || int64(l.k)%block != 0 {
			return fmt.Errorf("attribute block_size is %d for rows of %d, want a power of two from 16 that "+
				"divides them", block, l.k)
		}
		l.block = int(block)
		scale = append(scale, int64(l.k)/block)
		zero = []int64{int64(l.count), int64(l.n), (int64(l.k)/block*int64(l.bits) + 7) / 8}
	}
	if s := l.scale; s == nil || !s.DType.IsFloat() || s.DType == ir.Double || !slices.Equal(s.Shape, scale) {
		return fmt.Errorf("input fc%d_scales is %v, want floats of shape %v", number, s, scale)
	}
	if z := l.zero; z != nil && (z.DType != ir.Uint8 || !slices.Equal(z.Shape, zero)) {
		return fmt.Errorf("input fc%d_zero_points is %s, want uint8 of shape %v", number, z, zero)
	}
	return nil
}

// prepareExperts prepacks the layers whose weights and scales are constant, as matrices by layer and expert.
func prepareExperts(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	var packed [3][]*kernel.Quantized
	p := &op.Prepared{}
	for i, at := range layerInputs[true] {
		if !n.IsConst(at.weight) || !n.IsConst(at.scale) {
			continue
		}
		l, err := layerOf(n, in, true, i)
		if err != nil {
			return nil, err
		}
		l.prepacked, l.prepackedZero = false, false
		for e := range l.count {
			packed[i] = append(packed[i], l.pack(pool, e, ir.AlignedBytes(l.memory())))
			p.Bytes += l.memory()
		}
		p.Drops = append(p.Drops, at.weight, at.scale)
		if l.zero != nil {
			p.Drops = append(p.Drops, at.zero)
		}
	}
	if len(p.Drops) == 0 {
		return nil, nil
	}
	p.State = packed
	return p, nil
}

// memory is the size of the weights of one expert that are not prepacked, as float32 or packed.
func (l *expertLayer) memory() int64 {
	if l.bits == 0 {
		if l.weight.DType == ir.Float {
			return 0
		}
		return aligned(4 * int64(l.n) * int64(l.k))
	}
	m, size := l.matrix(), int64(0)
	if !l.prepacked {
		size += aligned(packedSize(m, 1, l.weight)) + aligned(packedSize(m, 2, l.scale))
	}
	if l.zero != nil && !l.prepackedZero {
		size += aligned(packedSize(m, 3, l.zero))
	}
	return size
}

func (l *expertLayer) matrix() *kernel.Quantized { return bitMatrix(l.k, l.n, l.bits, l.block) }

// pack packs what is not prepacked of the weights of expert e, in memory.
func (l *expertLayer) pack(pool *op.Pool, e int, memory []byte) *kernel.Quantized {
	m := l.matrix()
	// A copy, to which zero points of this run are added if they are not constant.
	if l.prepacked {
		*m = *l.packed[e]
	}
	fill := func(i int, a *ir.Array) {
		size := packedSize(m, i, a)
		packInput(m, pool, i, a, memory[:size])
		memory = memory[aligned(size):]
	}
	if !l.prepacked {
		fill(1, of(l.weight, e))
		fill(2, of(l.scale, e))
	}
	if l.zero != nil && !l.prepackedZero {
		fill(3, l.zeroOf(e))
	}
	return m
}

// zeroOf are the zero points of expert e as MatMulNBits stores them, also if they are packed along the outputs.
func (l *expertLayer) zeroOf(e int) *ir.Array {
	packed := of(l.zero, e)
	if len(packed.Shape) == 2 {
		return packed
	}
	z := ir.NewArray(ir.Uint8, int64(l.n))
	for i := range l.n {
		z.Data[i] = narrow.Element(packed.Data, i, l.bits)
	}
	return z
}

// of is the part of expert e.
func of(a *ir.Array, e int) *ir.Array {
	size := op.Product(a.Shape[1:]) * a.DType.Bits() / 8
	return &ir.Array{DType: a.DType, Shape: a.Shape[1:], Data: a.Data[int64(e)*size:][:size]}
}

// product is a·Wᵀ + b of expert e, for m rows, in y.
func (l *expertLayer) product(c *op.Call, e, m int, y, a []float32, work []byte) {
	p := gemm.FloatProduct{A: gemm.Rows(a, l.k), C: y, Stride: l.n}
	if l.bias != nil {
		bias := make([]float32, l.n)
		readFloats(bias, l.bias, e*l.n)
		p.Epilogue.Bias = gemm.Matrix[float32]{Data: bias, Col: 1}
	}
	memory, work := work[:l.memory()], work[l.memory():]
	switch {
	case l.bits != 0:
		p.Quantized = l.pack(c.Pool, e, memory)
	case l.weight.DType == ir.Float:
		p.B = gemm.Rows(ir.View[float32](of(l.weight, e)), l.k).T()
	default:
		wide := kernel.Words[float32](memory)[:l.n*l.k]
		c.Pool.Rows(l.n, chunk/l.k+1, func(from, to int) {
			readFloats(wide[from*l.k:to*l.k], l.weight, (e*l.n+from)*l.k)
		})
		p.B = gemm.Rows(wide, l.k).T()
	}
	gemm.Float(c.Pool, gemm.Shape{M: m, N: l.n, K: l.k}, work, p)
}
