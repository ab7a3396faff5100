package modelgen

import "github.com/mcompress/mcompress/ir"

// Layers whose weights another quantizer has made integers, with the operators that compute with these. All of them
// round activations.

// integers adds random bytes of a type as a weight.
func (b *builder) integers(t ir.DType, shape ...int64) val {
	low, high := -127, 128
	if t == ir.Uint8 {
		low, high = 0, 256
	}
	return b.initializer(tensorOf(b.name("quantized"), t, shape,
		func(int64) float64 { return float64(low + b.r.IntN(high-low)) }))
}

// setting adds a scale or zero point, a scalar without sizes.
func (b *builder) setting(t ir.DType, x float64, shape ...int64) val {
	return b.constant(parameter(tensorOf("", t, shape, func(int64) float64 { return x })))
}

// activation is the scale and the zero point of activations.
func (b *builder) activation() (scale, zero val) {
	return b.setting(ir.Float, 0.03), b.setting(ir.Uint8, 128)
}

// rounded is x as 8-bit integers of that scale.
func (b *builder) rounded(x, scale, zero val) val {
	b.m.discontinuous, b.m.ordinary = true, false
	return b.node("QuantizeLinear", []val{x, scale, zero}, ir.Uint8, x.shape)
}

func (b *builder) real(q, scale, zero val) val {
	return b.node("DequantizeLinear", []val{q, scale, zero}, ir.Float, q.shape)
}

// dynamic is x as 8-bit integers of a scale that its values give.
func (b *builder) dynamic(x val) (q, scale, zero val) {
	b.m.discontinuous, b.m.ordinary = true, false
	q, scale, zero = val{b.name("v"), ir.Uint8, x.shape}, val{b.name("v"), ir.Float, nil},
		val{b.name("v"), ir.Uint8, nil}
	b.add(&Node{Name: b.name("DynamicQuantizeLinear"), Op: "DynamicQuantizeLinear", In: []string{x.name},
		Out: []string{q.name, scale.name, zero.name}})
	return q, scale, zero
}

// integerLayer is a product or a convolution of integers, as the quantizers of ONNX Runtime write it.
func (b *builder) integerLayer(x val) val {
	b.trait("integer layer")
	if x.rank() == 4 && b.chance(2) {
		return b.integerConv(x)
	}
	n := b.size()
	wide := with(x.shape, -1, n)
	weight := one(b, ir.Int8, ir.Uint8)
	var channels []int64 // of the weight's scales
	if b.chance(2) {
		channels = []int64{n}
	}
	switch b.r.IntN(5) {
	case 0:
		q, scale, zero := b.dynamic(x)
		in := []val{q, b.integers(weight, x.last(), n), zero}
		if b.chance(2) {
			in = append(in, b.setting(weight, 3))
		}
		y := b.cast(b.node("MatMulInteger", in, ir.Int32, wide), ir.Float)
		return b.like("Mul", y, b.node("Mul", []val{scale, b.setting(ir.Float, 0.01, channels...)}, ir.Float, channels))
	case 1:
		q, scale, zero := b.dynamic(x)
		in := []val{q, b.integers(weight, x.last(), n), scale, b.setting(ir.Float, 0.01, channels...), zero}
		if b.chance(2) {
			in = append(in, b.setting(weight, 3, channels...), b.weight("bias", 4, n))
		}
		return b.ms("MatMulIntegerToFloat", in, ir.Float, wide)
	case 2:
		scale, zero := b.activation()
		in := []val{b.rounded(x, scale, zero), scale, zero, b.integers(weight, x.last(), n),
			b.setting(ir.Float, 0.01, channels...), b.setting(weight, 0, channels...), scale, zero}
		return b.real(b.node("QLinearMatMul", in, ir.Uint8, wide), scale, zero)
	case 3:
		if x.rank() != 2 {
			break
		}
		scale, zero := b.activation()
		in := []val{b.rounded(x, scale, zero), scale, zero, b.integers(weight, n, x.last()),
			b.setting(ir.Float, 0.01, channels...), b.setting(weight, 0, channels...)}
		if b.chance(2) {
			in = append(in, b.initializer(tensorOf(b.name("bias"), ir.Int32, []int64{n},
				func(int64) float64 { return float64(b.r.IntN(2000) - 1000) })))
		} else {
			in = append(in, val{})
		}
		return b.ms("QGemm", in, ir.Float, wide, i64("transB", 1))
	}
	return b.integerMovement(x)
}

// integerConv is a convolution by a 3×3 filter of a channel or all.
func (b *builder) integerConv(x val) val {
	weight := one(b, ir.Int8, ir.Uint8)
	c, out := x.shape[1], b.size()
	shape := with(x.shape, 1, out)
	pads := ints("pads", 1, 1, 1, 1)
	if b.chance(3) {
		q, scale, zero := b.dynamic(x)
		y := b.cast(b.node("ConvInteger", []val{q, b.integers(ir.Uint8, out, c, 3, 3), zero,
			b.setting(ir.Uint8, 128)}, ir.Int32, shape, pads), ir.Float)
		return b.like("Mul", y, b.node("Mul", []val{scale, b.setting(ir.Float, 0.01)}, ir.Float, nil))
	}
	scale, zero := b.activation()
	in := []val{b.rounded(x, scale, zero), scale, zero, b.integers(weight, out, c, 3, 3), b.setting(ir.Float, 0.01),
		b.setting(weight, 0), scale, zero}
	if b.chance(2) {
		in = append(in, b.initializer(tensorOf(b.name("bias"), ir.Int32, []int64{out},
			func(int64) float64 { return float64(b.r.IntN(2000) - 1000) })))
	}
	return b.real(b.node("QLinearConv", in, ir.Uint8, shape, pads), scale, zero)
}

// integerMovement are ONNX Runtime's operators on 8-bit activations, as far as 1.31 has them: QLinearReduceMean is not
// implemented.
func (b *builder) integerMovement(x val) val {
	b.m.Contrib = true
	scale, zero := b.activation()
	q := b.rounded(x, scale, zero)
	one8 := func(op string, shape []int64, attrs ...Attr) val {
		return b.real(b.ms(op, []val{q, scale, zero, scale, zero}, ir.Uint8, shape, attrs...), scale, zero)
	}
	switch op := one(b, "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat",
		"QLinearSoftmax", "QLinearGlobalAveragePool", "QLinearAveragePool", "QLinearWhere", "pair"); {
	case op == "QLinearAdd" || op == "QLinearMul":
		other := b.integers(ir.Uint8, x.last())
		return b.real(b.ms(op, []val{q, scale, zero, other, scale, zero, scale, zero}, ir.Uint8, x.shape), scale, zero)
	case op == "QLinearSigmoid" || op == "QLinearLeakyRelu":
		return one8(op, x.shape)
	case op == "QLinearConcat":
		wide := with(x.shape, -1, 2*x.last())
		return b.real(b.ms(op, []val{scale, zero, q, scale, zero, q, scale, zero}, ir.Uint8, wide,
			i64("axis", int64(x.rank()-1))), scale, zero)
	case op == "QLinearSoftmax" && b.opset >= 13:
		return one8(op, x.shape, i64("axis", int64(x.rank()-1)), i64("opset", b.opset))
	case op == "QLinearGlobalAveragePool" && x.rank() == 4:
		return one8(op, []int64{x.shape[0], x.shape[1], 1, 1}, i64("channels_last", 0))
	case op == "QLinearAveragePool" && x.rank() == 4:
		return one8(op, x.shape, ints("kernel_shape", 3, 3), ints("pads", 1, 1, 1, 1), i64("count_include_pad", 1))
	case op == "QLinearWhere" && b.opset >= 9:
		at := b.node("Greater", []val{x, b.number(0.1)}, ir.Bool, x.shape)
		return b.real(b.ms(op, []val{at, q, scale, zero, q, scale, zero, scale, zero}, ir.Uint8, x.shape), scale, zero)
	}
	y := b.ms("QuantizeLinear", []val{x, scale, zero}, ir.Uint8, x.shape)
	return b.ms("DequantizeLinear", []val{y, scale, zero}, ir.Float, x.shape)
}

// integerAttention is self-attention of 8-bit weights.
func (b *builder) integerAttention(x val, heads int64) val {
	w := x.last()
	q, scale, zero := b.dynamic(x)
	in := []val{q, b.integers(ir.Int8, w, 3*w), b.weight("bias", 4, 3*w), scale, b.setting(ir.Float, 0.01), {}, zero,
		b.setting(ir.Int8, 0)}
	return b.ms("QAttention", in, x.typ, x.shape, i64("num_heads", heads))
}

// integerLSTM is an LSTM over the first axis of x with 8-bit gates, whose columns are the gates.
func (b *builder) integerLSTM(x val) val {
	b.m.discontinuous, b.m.ordinary, b.m.Contrib = true, false, true
	hidden := one(b, int64(3), 8, 16, 17)
	gates := one(b, ir.Int8, ir.Uint8)
	in := []val{x, b.integers(gates, 1, x.last(), 4*hidden), b.integers(gates, 1, hidden, 4*hidden),
		b.weight("B", 4, 1, 8*hidden), {}, {}, {}, {},
		b.setting(ir.Float, 0.01, 1), b.setting(gates, 3, 1), b.setting(ir.Float, 0.01, 1), b.setting(gates, 2, 1)}
	state := val{b.name("v"), x.typ, []int64{1, x.shape[1], hidden}}
	b.add(&Node{Name: b.name("DynamicQuantizeLSTM"), Domain: contributed, Op: "DynamicQuantizeLSTM", In: namesOf(in),
		Out: []string{"", state.name}, Attrs: []Attr{i64("hidden_size", hidden)}})
	return state
}

// blockTable looks up rows of a table of 4 or 8 bits in blocks.
func (b *builder) blockTable() val {
	rows, width, block := b.size(), one(b, int64(32), 64, 96), int64(32)
	ids := b.constant(tensorOf("", ir.Int64, []int64{2, 3}, func(int64) float64 { return float64(b.r.Int64N(rows)) }))
	bits := one(b, int64(4), 8)
	in := []val{b.integers(ir.Uint8, rows, width*bits/8), ids,
		b.constant(parameter(tensorOf("", ir.Float, []int64{rows, width / block},
			func(int64) float64 { return 0.01 + 0.01*b.r.Float64() })))}
	return b.ms("GatherBlockQuantized", in, ir.Float, []int64{2, 3, width}, i64("bits", bits),
		i64("block_size", block), i64("gather_axis", 0), i64("quantize_axis", 1))
}

// embedded is the embedding of a BERT model: words, positions and segments, in float or in 8 bits.
func (b *builder) embedded() val {
	words, width, steps := one(b, int64(7), 50, 257), one(b, int64(16), 32), one(b, int64(3), 5)
	indices := func(n int64) val {
		return b.input("ids", ir.Int32, []int64{1, steps}, func(int64) float64 { return float64(b.r.Int64N(n)) })
	}
	in := []val{indices(words), indices(2)}
	tables := []int64{words, steps + 1, 2}
	y := val{b.name("v"), ir.Float, []int64{1, steps, width}}
	n := &Node{Domain: contributed, Op: "EmbedLayerNormalization", Out: []string{y.name, b.name("v")}}
	b.m.Contrib = true
	if b.chance(2) {
		for _, rows := range tables {
			in = append(in, b.weight("table", 1, rows, width))
		}
		in = append(in, b.weight("gain", 1, width), b.weight("shift", 4, width))
	} else {
		n.Op = "QEmbedLayerNormalization"
		for _, rows := range tables {
			in = append(in, b.integers(ir.Uint8, rows, width))
		}
		in = append(in, b.integers(ir.Uint8, width), b.integers(ir.Uint8, width), val{})
		for range 5 {
			in = append(in, b.setting(ir.Float, 0.01))
		}
		for range 5 {
			in = append(in, b.setting(ir.Uint8, 120))
		}
	}
	n.Name, n.In = b.name(n.Op), namesOf(in)
	b.add(n)
	b.m.types[y.name] = y
	return y
}

// encoder is a BERT-like model of ONNX Runtime's operators, with weights of floats and of integers.
func (b *builder) encoder() []val {
	x := b.embedded()
	for range 1 + b.r.IntN(2) {
		y := one(b, (*builder).fusedAttention, (*builder).integerAttention)(b, x, 2)
		x = b.ms("SkipSimplifiedLayerNormalization", []val{x, y, b.weight("gain", 1, x.last())}, x.typ, x.shape)
	}
	return []val{x, b.matMul(b.integerLayer(x))}
}
