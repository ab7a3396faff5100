package modelgen

import (
	"github.com/mcompress/mcompress/ir"
)

// ms adds an operator of ONNX Runtime.
func (b *builder) ms(op string, in []val, typ ir.DType, shape []int64, attrs ...Attr) val {
	b.m.Contrib = true
	return b.domain(contributed, op, in, typ, shape, attrs...)
}

// contributedNet is a transformer as optimizers of ONNX Runtime and exporters for it write it.
func (b *builder) contributedNet() []val {
	heads := one(b, int64(2), 4)
	width := heads * one(b, int64(8), 16)
	x := b.input("x", b.float, []int64{1, one(b, int64(1), 5, 8), width}, normal(b.r, 1))
	for range 1 + b.r.IntN(2) {
		y := one(b, (*builder).fusedAttention, (*builder).multiHead, (*builder).groupQuery)(b, x, heads)
		x = b.ms("SkipLayerNormalization", []val{x, y, b.weight("gain", 1, width), b.weight("shift", 4, width)},
			x.typ, x.shape)
		hidden := 2 * width
		up := b.ms("FusedMatMul", []val{x, b.weight("up", width, width, hidden)}, x.typ, with(x.shape, -1, hidden),
			f32("alpha", 0.5))
		up = b.ms("BiasGelu", []val{up, b.weight("bias", 4, hidden)}, x.typ, up.shape)
		x = b.like("Add", x, b.blockProduct(up, width))
	}
	if b.chance(2) {
		x = b.experts(x)
	}
	flat := b.reshape(x, -1, width)
	n := b.size()
	logits := b.ms("FusedGemm", []val{flat, b.weight("head", width, width, n), b.weight("bias", 4, n)}, x.typ,
		[]int64{flat.shape[0], n}, text("activation", "Relu"))
	return []val{x, logits}
}

func (b *builder) fusedAttention(x val, heads int64) val {
	w := x.last()
	return b.ms("Attention", []val{x, b.weight("qkv", w, w, 3*w), b.weight("bias", 4, 3*w)}, x.typ, x.shape,
		i64("num_heads", heads), i64("unidirectional", b.r.Int64N(2)))
}

// projected are products of x with three weights.
func (b *builder) projected(x val, sizes ...int64) (list []val) {
	for _, n := range sizes {
		list = append(list, b.node("MatMul", []val{x, b.weight("projection", x.last(), x.last(), n)}, x.typ,
			with(x.shape, -1, n)))
	}
	return list
}

func (b *builder) multiHead(x val, heads int64) val {
	w := x.last()
	return b.ms("MultiHeadAttention", append(b.projected(x, w, w, w), b.weight("bias", 4, 3*w)), x.typ, x.shape,
		i64("num_heads", heads))
}

func (b *builder) groupQuery(x val, heads int64) val {
	w, steps := x.last(), x.shape[1]
	shared := w / 2 // two queries for each key
	size := w / heads
	in := b.projected(x, w, shared, shared)
	lengths := b.constant(tensorOf("", ir.Int32, []int64{1}, func(int64) float64 { return float64(steps - 1) }))
	total := b.constant(tensorOf("", ir.Int32, nil, func(int64) float64 { return float64(steps) }))
	in = append(in, val{}, val{}, lengths, total)
	attrs := []Attr{i64("num_heads", heads), i64("kv_num_heads", heads/2)}
	if size%16 == 0 && b.chance(2) {
		cache := []int64{16, size / 2}
		in = append(in, b.constant(tensorOf("", b.float, cache, normal(b.r, 0.5))),
			b.constant(tensorOf("", b.float, cache, normal(b.r, 0.5))))
		attrs = append(attrs, i64("do_rotary", 1))
	}
	b.m.Contrib = true
	out := val{b.name("v"), x.typ, x.shape}
	b.add(&Node{Name: b.name("GroupQueryAttention"), Domain: contributed, Op: "GroupQueryAttention", In: namesOf(in),
		Out: []string{out.name, b.name("v"), b.name("v")}, Attrs: attrs})
	return out
}

// blockProduct is MatMulNBits of 4 or 8 bits in blocks of 16 or 32.
func (b *builder) blockProduct(x val, n int64) val {
	b.trait("MatMulNBits")
	k, bits, block := x.last(), one(b, int64(4), 8), one(b, int64(16), 32)
	blocks := (k + block - 1) / block
	bytes := func(shape ...int64) *Tensor {
		return tensorOf(b.name("quantized"), ir.Uint8, shape, func(int64) float64 { return float64(b.r.IntN(256)) })
	}
	scales := tensorOf(b.name("scales"), ir.Float, []int64{n * blocks},
		func(int64) float64 { return 0.01 + 0.01*b.r.Float64() })
	in := []val{x, b.initializer(bytes(n, blocks, block*bits/8)), b.initializer(parameter(scales))}
	if b.chance(2) {
		in = append(in, b.initializer(parameter(bytes(n*((blocks*bits+7)/8)))))
	}
	return b.ms("MatMulNBits", in, x.typ, with(x.shape, -1, n), i64("K", k), i64("N", n), i64("bits", bits),
		i64("block_size", block))
}

// experts is a mixture of experts.
func (b *builder) experts(x val) val {
	count, width := int64(3), x.last()
	flat := b.reshape(x, -1, width)
	b.m.discontinuous = true // by the choice of experts
	router := b.node("MatMul", []val{flat, b.weight("router", width, width, count)}, x.typ,
		[]int64{flat.shape[0], count})
	if b.chance(2) {
		scales := func(n int64) val {
			return b.initializer(parameter(tensorOf(b.name("scales"), ir.Float, []int64{count, n},
				func(int64) float64 { return 0.002 + 0.002*b.r.Float64() })))
		}
		in := []val{flat, router, b.integers(ir.Uint8, count, 2*width, width), scales(2 * width), {},
			b.integers(ir.Uint8, count, width, 2*width), scales(width)}
		return b.reshape(b.ms("QMoE", in, x.typ, flat.shape, i64("k", 1), text("activation_type", "relu"),
			i64("expert_weight_bits", 8)), x.shape...)
	}
	in := []val{flat, router, b.weight("experts", width, count, 2*width, width), {},
		b.weight("experts", 2*width, count, width, 2*width)}
	return b.reshape(b.ms("MoE", in, x.typ, flat.shape, i64("k", 1), text("activation_type", "relu")), x.shape...)
}

// contributedLayer is an operator of ONNX Runtime with a weight.
func (b *builder) contributedLayer(x val) val {
	n := b.size()
	switch {
	case b.chance(3):
		return b.blockProduct(x, n)
	case b.chance(6):
		return b.blockTable()
	case b.chance(6):
		k, block := x.last(), one(b, int64(16), 32, 64)
		in := []val{x, b.integers(ir.Uint8, (n*k+1)/2),
			b.initializer(parameter(tensorOf(b.name("scales"), ir.Float, []int64{(n*k + block - 1) / block},
				func(int64) float64 { return 0.1 + 0.1*b.r.Float64() })))}
		return b.ms("MatMulBnb4", in, x.typ, with(x.shape, -1, n), i64("K", k), i64("N", n), i64("block_size", block),
			i64("quant_type", b.r.Int64N(2)))
	case b.chance(2):
		bytes := func(shape ...int64) val {
			return b.initializer(tensorOf(b.name("quantized"), ir.Int8, shape,
				func(int64) float64 { return float64(b.r.IntN(255) - 127) }))
		}
		scale := b.constant(tensorOf("", ir.Float, nil, func(int64) float64 { return 0.01 }))
		b.m.discontinuous = true // activations are rounded
		return b.ms("DynamicQuantizeMatMul", []val{x, bytes(x.last(), n), scale}, x.typ, with(x.shape, -1, n))
	}
	return b.ms("FusedMatMul", []val{x, b.weight("fused", x.last(), n, x.last())}, x.typ, with(x.shape, -1, n),
		i64("transB", 1))
}

// fusedConv is a convolution with its activation, as ONNX Runtime's optimizer writes it, or one whose taps are moved by
// an input.
func (b *builder) fusedConv(x val) val {
	out, c := b.size(), x.shape[1]
	filter, shape := b.weight("filter", 9*c, out, c, 3, 3), with(x.shape, 1, out)
	if b.opset >= 19 && b.chance(3) {
		offsets := b.constant(tensorOf("", ir.Float, []int64{x.shape[0], 18, x.shape[2], x.shape[3]}, normal(b.r, 0.3)))
		return b.node("DeformConv", []val{x, filter, offsets}, x.typ, shape, ints("pads", 1, 1, 1, 1),
			ints("kernel_shape", 3, 3))
	}
	return b.ms("FusedConv", []val{x, filter, b.weight("bias", 4, out)}, x.typ, shape, ints("pads", 1, 1, 1, 1),
		ints("kernel_shape", 3, 3), text("activation", one(b, "Relu", "Sigmoid", "Tanh")))
}
