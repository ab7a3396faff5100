package modelgen

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A layer is a group of nodes that the builder may add after a value for which ok holds.
type layer struct {
	name string
	ok   func(b *builder, x val) bool
	add  func(b *builder, x val) val
}

func rank(least, most int) func(*builder, val) bool {
	return func(_ *builder, x val) bool {
		return x.rank() >= least && x.rank() <= most && x.elems() > 0 && x.elems() < 1<<16
	}
}

// since is ok from an opset on.
func since(opset int64, ok func(*builder, val) bool) func(*builder, val) bool {
	return func(b *builder, x val) bool { return b.opset >= opset && ok(b, x) }
}

func float32Only(ok func(*builder, val) bool) func(*builder, val) bool {
	return func(b *builder, x val) bool { return b.float == ir.Float && ok(b, x) }
}

// outermost is ok in the main graph.
func outermost(ok func(*builder, val) bool) func(*builder, val) bool {
	return func(b *builder, x val) bool { return !b.nested && ok(b, x) }
}

// weighted are layers with weights.
var weighted = []layer{
	{"MatMul", rank(2, 4), (*builder).matMul},
	{"MatMul", rank(2, 4), (*builder).matMul},
	{"Gemm", rank(2, 2), (*builder).gemm},
	{"left MatMul", rank(2, 3), (*builder).leftMatMul},
	{"Conv", float32Only(rank(3, 5)), (*builder).conv},
	{"Conv", float32Only(rank(4, 4)), (*builder).conv},
	{"ConvTranspose", float32Only(rank(3, 4)), (*builder).convTranspose},
	{"Gather", rank(1, 3), (*builder).embedding},
	{"LSTM", float32Only(rank(3, 3)), (*builder).lstm},
	{"GRU", float32Only(rank(3, 3)), (*builder).gru},
	{"RNN", float32Only(rank(3, 3)), (*builder).rnn},
	{"Einsum", since(12, rank(2, 3)), (*builder).einsum},
	{"batch of MatMul", rank(3, 3), (*builder).batchMatMul},
	{"factors", rank(2, 3), (*builder).lowRank},
	{"ONNX Runtime's", float32Only(outermost(rank(2, 3))), (*builder).contributedLayer},
	{"fused Conv", float32Only(outermost(rank(4, 4))), (*builder).fusedConv},
	{"integers", since(11, float32Only(outermost(rank(2, 4)))), (*builder).integerLayer},
	{"integers of LSTM", since(11, float32Only(outermost(rank(3, 3)))), (*builder).integerLSTM},
}

// others are layers without matrices.
var others = []layer{
	{"unary", rank(0, 5), (*builder).unary},
	{"unary", rank(0, 5), (*builder).unary},
	{"bias", rank(1, 5), (*builder).bias},
	{"scale", rank(1, 5), (*builder).scaleBy},
	{"gate", rank(1, 5), func(b *builder, x val) val { return b.like("Mul", x, b.like("Sigmoid", x)) }},
	{"residual", rank(1, 5), func(b *builder, x val) val { return b.like("Add", x, b.unary(x)) }},
	{"Softmax", rank(2, 4), (*builder).softmax},
	{"normalization", rank(2, 4), (*builder).layerNorm},
	{"BatchNormalization", float32Only(rank(2, 5)), (*builder).batchNorm},
	{"transpose", rank(2, 5), (*builder).anyTranspose},
	{"flatten", rank(3, 5), (*builder).flatten},
	{"halves", rank(2, 5), (*builder).halves},
	{"slice", rank(1, 5), (*builder).anySlice},
	{"concat", rank(2, 5), func(b *builder, x val) val { return b.concat(int64(x.rank()-1), x, b.unary(x)) }},
	{"pool", float32Only(rank(4, 4)), (*builder).pool},
	{"global pool", float32Only(rank(4, 4)), (*builder).globalPool},
	{"reshape", rank(2, 4), func(b *builder, x val) val { return b.reshape(x, x.shape[0], -1) }},
	{"If", outermost(rank(2, 4)), (*builder).ifNode},
	{"Loop", since(8, outermost(rank(2, 3))), (*builder).loop},
	{"Scan", since(9, outermost(rank(2, 3))), (*builder).scan},
	{"function", since(8, outermost(rank(2, 3))), (*builder).call},
	{"mask", since(9, rank(2, 4)), (*builder).mask},
	{"double", float32Only(rank(1, 3)), func(b *builder, x val) val {
		return b.cast(b.like("Neg", b.cast(x, ir.Double)), ir.Float)
	}},
	{"computed shape", rank(2, 4), (*builder).computedShape},
	{"pair", float32Only(rank(1, 4)), (*builder).pair},
	{"pair", float32Only(rank(1, 4)), (*builder).pair},
	{"positive", float32Only(rank(1, 4)), (*builder).positive},
	{"bounded", float32Only(rank(1, 4)), (*builder).bounded},
	{"reduction", float32Only(rank(2, 4)), (*builder).reduction},
	{"normalization", float32Only(rank(2, 4)), (*builder).normalized},
	{"window", since(17, float32Only(rank(1, 3))), (*builder).window},
	{"other normalization", float32Only(rank(2, 4)), (*builder).normalized},
	{"movement", float32Only(outermost(rank(2, 4))), (*builder).moved},
	{"movement", float32Only(outermost(rank(2, 4))), (*builder).moved},
	{"movement", float32Only(outermost(rank(2, 4))), (*builder).moved},
	{"movement", float32Only(outermost(rank(2, 4))), (*builder).moved},
	{"resampling", float32Only(rank(4, 4)), (*builder).resampled},
	{"resampling", float32Only(rank(4, 4)), (*builder).resampled},
	{"resampling", float32Only(rank(4, 4)), (*builder).resampled},
}

// any adds a layer of the list that fits x.
func (b *builder) any(list []layer, x val) val {
	for range 20 {
		l := one(b, list...)
		if l.ok(b, x) {
			y := l.add(b, x)
			if y.elems() > 1<<18 {
				continue // its nodes stay without consumers
			}
			return y
		}
	}
	return x
}

func (b *builder) matMul(x val) val {
	n := b.wide(x.last())
	y := b.node("MatMul", []val{x, b.weight("weight", x.last(), x.last(), n)}, x.typ, with(x.shape, -1, n))
	if b.chance(2) {
		return b.bias(y)
	}
	return y
}

// with is shape with the axis, counted from the end if negative, of size n.
func with(shape []int64, axis int, n int64) []int64 {
	s := slices.Clone(shape)
	s[(axis+len(s))%len(s)] = n
	return s
}

func (b *builder) gemm(x val) val {
	n := b.wide(x.last())
	in := []val{x, {}}
	var attrs []Attr
	if b.chance(2) {
		in[1] = b.weight("weight", x.last(), n, x.last())
		attrs = append(attrs, i64("transB", 1))
	} else {
		in[1] = b.weight("weight", x.last(), x.last(), n)
	}
	if b.chance(5) {
		attrs = append(attrs, f32("alpha", 0.5))
	}
	if b.opset < 11 || b.chance(2) {
		in = append(in, b.weight("bias", 4, n))
		if b.chance(6) {
			attrs = append(attrs, f32("beta", 2))
		}
	}
	return b.node("Gemm", in, x.typ, with(x.shape, -1, n), attrs...)
}

// leftMatMul multiplies a weight by x.
func (b *builder) leftMatMul(x val) val {
	rows, n := x.shape[x.rank()-2], b.size()
	return b.node("MatMul", []val{b.weight("left", rows, n, rows), x}, x.typ, with(x.shape, -2, n))
}

func (b *builder) batchMatMul(x val) val {
	n := b.size()
	return b.node("MatMul", []val{x, b.weight("batch", x.last(), x.shape[0], x.last(), n)}, x.typ, with(x.shape, -1, n))
}

// lowRank is a product of two factors, as of LoRA.
func (b *builder) lowRank(x val) val {
	r, n := one(b, int64(1), 2, 4, 8), b.size()
	y := b.node("MatMul", []val{x, b.weight("down", x.last(), x.last(), r)}, x.typ, with(x.shape, -1, r))
	return b.node("MatMul", []val{y, b.weight("up", r, r, n)}, x.typ, with(x.shape, -1, n))
}

func (b *builder) einsum(x val) val {
	n := b.size()
	equation := map[int]string{2: "ab,bc->ac", 3: "abc,cd->abd"}[x.rank()]
	return b.node("Einsum", []val{x, b.weight("einsum", x.last(), x.last(), n)}, x.typ, with(x.shape, -1, n),
		text("equation", equation))
}

// conv is a convolution of one to three spatial axes, also grouped and depthwise.
func (b *builder) conv(x val) val {
	c, spatial := x.shape[1], x.rank()-2
	group, out := int64(1), b.size()
	switch b.r.IntN(5) {
	case 0: // depthwise
		group, out = c, c*one(b, int64(1), 1, 2)
	case 1:
		if g := one(b, int64(2), 3, 4); c%g == 0 {
			group, out = g, g*one(b, int64(1), 3, 8)
		}
	}
	kernel, pads, shape := []int64{}, []int64{}, []int64{x.shape[0], out}
	k := one(b, int64(1), 3, 3, 5)
	for i := range spatial {
		kernel = append(kernel, k)
		pads = append(pads, k/2)
		shape = append(shape, x.shape[2+i])
	}
	fan := c / group
	for _, k := range kernel {
		fan *= k
	}
	in := []val{x, b.weight("filter", fan, append([]int64{out, c / group}, kernel...)...)}
	if b.chance(2) {
		in = append(in, b.weight("bias", 4, out))
	}
	attrs := []Attr{ints("pads", append(pads, pads...)...)}
	if group > 1 || b.chance(3) {
		attrs = append(attrs, i64("group", group))
	}
	if b.chance(3) {
		attrs = append(attrs, ints("kernel_shape", kernel...))
	}
	if b.chance(4) {
		strides := slices.Repeat([]int64{2}, spatial)
		attrs = append(attrs, ints("strides", strides...))
		for i := range spatial {
			shape[2+i] = (shape[2+i] + 1) / 2
		}
	}
	return b.node("Conv", in, x.typ, shape, attrs...)
}

func (b *builder) convTranspose(x val) val {
	out, spatial := b.size(), x.rank()-2
	kernel, shape := []int64{}, []int64{x.shape[0], out}
	for i := range spatial {
		kernel = append(kernel, 2)
		shape = append(shape, 2*x.shape[2+i])
	}
	in := []val{x, b.weight("filter", x.shape[1], append([]int64{x.shape[1], out}, kernel...)...)}
	if b.chance(2) {
		in = append(in, b.weight("bias", 4, out))
	}
	return b.node("ConvTranspose", in, x.typ, shape, ints("strides", kernel...))
}

// ids are indices below n of the shape of x without its last axis, or constant ones.
func (b *builder) ids(x val, n int64) val {
	if b.chance(3) || x.typ != ir.Float {
		return b.constant(tensorOf("", ir.Int64, []int64{2, 3}, func(int64) float64 { return float64(b.r.Int64N(n)) }))
	}
	b.m.discontinuous, b.m.ordinary = true, false
	bounded := b.like("Sigmoid", x)
	scaled := b.like("Mul", bounded, b.number(float64(n)-0.5))
	index := b.cast(scaled, ir.Int64)
	return index
}

// embedding looks up rows of a table, along another axis than the first one now and then.
func (b *builder) embedding(x val) val {
	rows, width := b.wide(8), b.size()
	ids := b.ids(x, rows)
	if b.chance(4) && ids.elems() < 1<<10 {
		return b.node("Gather", []val{b.weight("table", 1, width, rows), ids}, b.float,
			append([]int64{width}, ids.shape...), i64("axis", 1))
	}
	if b.chance(6) && ids.elems() < 1<<8 {
		return b.node("Gather", []val{b.weight("table", 1, rows, 3, width), ids}, b.float,
			append(slices.Clone(ids.shape), 3, width))
	}
	return b.node("Gather", []val{b.weight("table", 1, rows, width), ids}, b.float,
		append(slices.Clone(ids.shape), width))
}

// recurrent is an LSTM, GRU or RNN over the first axis of x, with its outputs of the last step or all of them.
func (b *builder) recurrent(op string, gates int64, x val) val {
	hidden, directions := one(b, int64(3), 4, 8, 16, 17, 32), int64(1)
	attrs := []Attr{i64("hidden_size", hidden)}
	if b.chance(3) {
		directions = 2
		attrs = append(attrs, text("direction", "bidirectional"))
	}
	if op == "GRU" && b.chance(2) {
		attrs = append(attrs, i64("linear_before_reset", 1))
	}
	steps, batch := x.shape[0], x.shape[1]
	in := []string{
		x.name,
		b.weight("W", x.last(), directions, gates*hidden, x.last()).name,
		b.weight("R", hidden, directions, gates*hidden, hidden).name,
	}
	if b.chance(2) {
		in = append(in, b.weight("B", 4, directions, 2*gates*hidden).name)
	}
	y := val{b.name("v"), x.typ, []int64{steps, directions, batch, hidden}}
	state := val{b.name("v"), x.typ, []int64{directions, batch, hidden}}
	b.add(&Node{Name: b.name(op), Op: op, In: in, Out: []string{y.name, state.name}, Attrs: attrs})
	if b.chance(3) {
		return state
	}
	return b.reshape(b.transpose(y, 0, 2, 1, 3), steps, batch, directions*hidden)
}

func (b *builder) lstm(x val) val { return b.recurrent("LSTM", 4, x) }
func (b *builder) gru(x val) val  { return b.recurrent("GRU", 3, x) }
func (b *builder) rnn(x val) val  { return b.recurrent("RNN", 1, x) }

func (b *builder) bias(x val) val {
	in := []val{x, b.weight("bias", 4, x.last())}
	if b.chance(2) {
		slices.Reverse(in)
	}
	return b.node("Add", in, x.typ, x.shape)
}

func (b *builder) scaleBy(x val) val {
	if b.chance(2) {
		return b.like("Mul", x, b.number(1.5))
	}
	return b.like("Div", x, b.constant(tensorOf("", b.float, []int64{x.last()},
		func(i int64) float64 { return 1 + float64(i%7)/4 })))
}

// layerNorm is LayerNormalization, or its decomposition in older opsets.
func (b *builder) layerNorm(x val) val {
	gain := b.weight("gain", 1, x.last())
	if b.opset >= 17 && b.chance(2) {
		return b.like("LayerNormalization", x, gain, b.weight("shift", 4, x.last()))
	}
	centered := b.like("Sub", x, b.mean(x, -1))
	variance := b.mean(b.like("Mul", centered, centered), -1)
	scaled := b.like("Div", centered, b.like("Sqrt", b.like("Add", variance, b.number(1e-3))))
	return b.like("Add", b.like("Mul", scaled, gain), b.weight("shift", 4, x.last()))
}

func (b *builder) batchNorm(x val) val {
	c := x.shape[1]
	positive := func(int64) float64 { return 0.5 + b.r.Float64() }
	in := []val{x}
	for i := range 4 {
		f := positive
		if i == 1 || i == 2 {
			f = normal(b.r, 0.3)
		}
		in = append(in, b.constant(tensorOf("", b.float, []int64{c}, f)))
	}
	return b.node("BatchNormalization", in, x.typ, x.shape)
}

func (b *builder) anyTranspose(x val) val {
	perm := make([]int64, x.rank())
	for i, p := range b.r.Perm(x.rank()) {
		perm[i] = int64(p)
	}
	return b.transpose(x, perm...)
}

func (b *builder) flatten(x val) val {
	return b.node("Flatten", []val{x}, x.typ, []int64{x.shape[0], x.elems() / x.shape[0]}, i64("axis", 1))
}

func (b *builder) halves(x val) val {
	if x.last()%2 != 0 {
		return b.unary(x)
	}
	h := b.split(x, int64(x.rank()-1), 2)
	return b.like("Mul", h[0], b.like("Sigmoid", h[1]))
}

func (b *builder) anySlice(x val) val {
	axis := b.r.IntN(x.rank())
	if x.shape[axis] < 2 {
		return b.unary(x)
	}
	return b.slice(x, int64(axis), b.r.Int64N(x.shape[axis]/2), x.shape[axis])
}

func (b *builder) pool(x val) val {
	if x.shape[2] < 2 || x.shape[3] < 2 {
		return b.globalPool(x)
	}
	shape := []int64{x.shape[0], x.shape[1], (x.shape[2]-2)/2 + 1, (x.shape[3]-2)/2 + 1}
	return b.node(one(b, "MaxPool", "AveragePool"), []val{x}, x.typ, shape, ints("kernel_shape", 2, 2),
		ints("strides", 2, 2))
}

func (b *builder) globalPool(x val) val {
	return b.node(one(b, "GlobalAveragePool", "GlobalMaxPool"), []val{x}, x.typ, []int64{x.shape[0], x.shape[1], 1, 1})
}

// mask adds a large negative number where a condition is false.
func (b *builder) mask(x val) val {
	b.trait("mask")
	b.m.discontinuous = true
	keep := b.node("Greater", []val{x, b.number(-0.5)}, ir.Bool, x.shape)
	if b.chance(2) {
		return b.node("Where", []val{keep, x, b.number(one(b, -1e4, -1e9, -3.4028234663852886e38))}, x.typ, x.shape)
	}
	inverse := b.like("Sub", b.cast(keep, b.float), b.number(1))
	return b.softmax(b.like("Add", x, b.like("Mul", inverse, b.number(one(b, 1e4, 1e9, 3.4028234663852886e38)))))
}

// computedShape reshapes by a shape that is computed from that of x, as exporters do for dynamic axes.
func (b *builder) computedShape(x val) val {
	shape := b.node("Shape", []val{x}, ir.Int64, []int64{int64(x.rank())})
	first := b.node("Gather", []val{shape, b.constant(tensorOf("", ir.Int64, nil, func(int64) float64 { return 0 }))},
		ir.Int64, nil, i64("axis", 0))
	target := b.concat(0, b.unsqueeze(first, 0), b.list(-1))
	return b.node("Reshape", []val{x, target}, x.typ, []int64{x.shape[0], x.elems() / x.shape[0]})
}
