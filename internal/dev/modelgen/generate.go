package modelgen

import (
	"math/rand/v2"

	"github.com/mcompress/mcompress/ir"
)

// The limits of versions: those that ONNX Runtime 1.31 and onnx 1.23 accept.
const (
	oldestOpset, newestOpset = 7, 26
	oldestIR, newestIR       = 3, 13
)

// An architecture makes the nodes of a model and returns its outputs.
type architecture struct {
	name  string
	opset int64 // oldest one
	build func(*builder) []val
}

// architectures are random graphs, and networks as exporters write them.
var architectures = []architecture{
	{"shallow", oldestOpset, (*builder).shallow},
	{"shallow", oldestOpset, (*builder).shallow},
	{"shallow", oldestOpset, (*builder).shallow},
	{"chain", oldestOpset, (*builder).chain},
	{"chain", oldestOpset, (*builder).chain},
	{"chain", oldestOpset, (*builder).chain},
	{"perceptron", oldestOpset, (*builder).perceptron},
	{"residual", oldestOpset, (*builder).residualNet},
	{"mobile", oldestOpset, (*builder).mobileNet},
	{"unet", oldestOpset, (*builder).uNet},
	{"transformer", oldestOpset, (*builder).transformer},
	{"language model", oldestOpset, (*builder).languageModel},
	{"recurrent", oldestOpset, (*builder).recurrentNet},
	{"detector", 11, (*builder).detector},
	{"selection", 11, (*builder).selection},
	{"contributed", 11, (*builder).contributedNet},
	{"encoder", 11, (*builder).encoder},
	{"durations", 11, (*builder).durations},
}

// New is the model of a seed.
func New(seed uint64) *Model {
	r := rand.New(rand.NewPCG(seed, 0x6d6f64656c)) // another stream than that of the commands
	names, budget := 0, int64(3<<19)
	m := &Model{Graph: &Graph{Name: "main"}, types: map[string]val{}}
	b := &builder{r: r, m: m, g: m.Graph, float: ir.Float, names: &names, budget: &budget, shared: map[string][]val{}}
	a := one(b, architectures...)
	b.trait("architecture: %s", a.name)
	m.Opset = a.opset + r.Int64N(newestOpset-a.opset+1)
	if r.IntN(3) > 0 {
		m.Opset = max(a.opset, one(b, int64(11), 13, 14, 17, 18, 20, 21)) // what most files have
	}
	b.opset = m.Opset
	m.IR = one(b, int64(3), 4, 6, 7, 8, 8, 9, 10, 11, 12, newestIR)
	switch {
	case a.name != "shallow" && a.name != "chain":
	case b.chance(12):
		b.float = ir.Float16
		b.trait("float16 model")
	case b.chance(20):
		b.float = ir.Double
		b.trait("double model")
	}
	b.outputs(a.build(b))
	return m
}

// outputs makes vs, and now and then values between nodes, the outputs of the model.
func (b *builder) outputs(vs []val) {
	seen := map[string]bool{}
	for _, v := range vs {
		if !seen[v.name] {
			seen[v.name] = true
			b.g.Outputs = append(b.g.Outputs, declared(v))
		}
	}
}

// input adds an input of the model with the values of its run.
func (b *builder) input(hint string, t ir.DType, shape []int64, values func(int64) float64) val {
	v := val{b.name(hint), t, shape}
	d := declared(v)
	if len(shape) > 1 && b.chance(3) {
		d.Shape[0] = ir.Dim{Param: "batch"}
	}
	b.g.Inputs = append(b.g.Inputs, d)
	b.m.Inputs = append(b.m.Inputs, tensorOf("", t, shape, values))
	b.m.types[v.name] = v
	return v
}

// shallow is one layer with an ordinary weight: the error of its output is that of the weight.
func (b *builder) shallow() []val {
	b.plain = b.chance(2)
	b.m.ordinary = b.plain && b.float == ir.Float
	ranks := map[string]int{"Conv": 4, "ConvTranspose": 4, "LSTM": 3, "GRU": 3, "RNN": 3, "batch of MatMul": 3,
		"Gemm": 2}
	for {
		l := one(b, weighted...)
		rank := ranks[l.name]
		if rank == 0 {
			rank = 2
		}
		shape := b.dims(rank)
		x := val{typ: b.float, shape: shape}
		if !l.ok(b, x) {
			continue
		}
		return []val{l.add(b, b.input("x", b.float, shape, normal(b.r, 1)))}
	}
}

// dims are sizes of axes of an activation.
func (b *builder) dims(rank int) []int64 {
	switch rank {
	case 2:
		return []int64{one(b, int64(1), 2, 5, 16), b.size()}
	case 3:
		return []int64{one(b, int64(1), 2, 5), one(b, int64(1), 3, 8), b.size()}
	}
	return []int64{one(b, int64(1), 2), b.size()%40 + 1, one(b, int64(4), 7, 8, 13), one(b, int64(4), 8, 9)}
}

// chain is a graph of random layers, each after any value so far.
func (b *builder) chain() []val {
	var values []val
	for range 1 + b.r.IntN(2) {
		values = append(values, b.input("x", b.float, b.dims(2+b.r.IntN(3)), normal(b.r, 1)))
	}
	if b.float != ir.Float {
		values = []val{values[0]}
	}
	for range 3 + b.r.IntN(10) {
		x := values[len(values)-1]
		if b.chance(4) {
			x = one(b, values...)
		}
		list := others
		if b.chance(2) && *b.budget > 0 {
			list = weighted
		}
		values = append(values, b.any(list, x))
	}
	outs := []val{values[len(values)-1]}
	if b.chance(3) {
		outs = append(outs, one(b, values[len(b.m.Inputs):]...))
		b.trait("several outputs")
	}
	return b.produced(outs)
}

// produced replaces inputs of the model among outputs by copies.
func (b *builder) produced(vs []val) []val {
	for i, v := range vs {
		for _, in := range b.g.Inputs {
			if in.Name == v.name {
				vs[i] = b.like("Identity", v)
			}
		}
	}
	return vs
}

func (b *builder) perceptron() []val {
	x := b.input("x", b.float, b.dims(2), normal(b.r, 1))
	for range 1 + b.r.IntN(4) {
		x = b.like("Relu", b.gemm(x))
	}
	return []val{b.gemm(x)}
}

// convOf is a convolution of out channels, square kernel k and stride s, with bias or followed by BatchNormalization.
func (b *builder) convOf(x val, out, k, s, group int64) val {
	c := x.shape[1]
	in := []val{x, b.weight("filter", k*k*c/group, out, c/group, k, k)}
	folded := b.chance(2)
	if folded {
		in = append(in, b.weight("bias", 4, out))
	}
	size := func(n int64) int64 { return (n+2*(k/2)-k)/s + 1 }
	y := b.node("Conv", in, x.typ, []int64{x.shape[0], out, size(x.shape[2]), size(x.shape[3])},
		ints("dilations", 1, 1), i64("group", group), ints("kernel_shape", k, k), ints("pads", k/2, k/2, k/2, k/2),
		ints("strides", s, s))
	if !folded {
		y = b.batchNorm(y)
	}
	return y
}

func (b *builder) image() val {
	return b.input("image", b.float, []int64{one(b, int64(1), 2), 3, 16, one(b, int64(16), 20)}, normal(b.r, 1))
}

func (b *builder) residualNet() []val {
	c := one(b, int64(8), 12, 16, 17, 24)
	x := b.like("Relu", b.convOf(b.image(), c, 3, 1, 1))
	for i := range 1 + b.r.IntN(3) {
		y := b.like("Relu", b.convOf(x, c, 3, 1, 1))
		y = b.convOf(y, c, 3, 1, 1)
		x = b.like("Relu", b.like("Add", y, x))
		if i == 0 {
			x = b.like("Relu", b.convOf(x, c, 3, 2, 1))
		}
	}
	return b.head(x)
}

// head is global pooling and a classifier.
func (b *builder) head(x val) []val {
	pooled := b.node("GlobalAveragePool", []val{x}, x.typ, []int64{x.shape[0], x.shape[1], 1, 1})
	logits := b.gemm(b.flatten(pooled))
	if b.chance(3) {
		return []val{logits, b.softmax(logits)}
	}
	return []val{logits}
}

func (b *builder) mobileNet() []val {
	x := b.relu6(b.convOf(b.image(), 8, 3, 2, 1))
	for range 1 + b.r.IntN(3) {
		wide := x.shape[1] * one(b, int64(1), 2, 4)
		y := b.relu6(b.convOf(x, wide, 1, 1, 1))
		y = b.relu6(b.convOf(y, wide, 3, 1, wide))
		if b.chance(2) { // squeeze and excitation
			s := b.node("GlobalAveragePool", []val{y}, y.typ, []int64{y.shape[0], wide, 1, 1})
			s = b.like("Relu", b.convOf(s, max(1, wide/4), 1, 1, 1))
			s = b.like("Sigmoid", b.convOf(s, wide, 1, 1, 1))
			y = b.like("Mul", y, s)
		}
		y = b.convOf(y, x.shape[1], 1, 1, 1)
		x = b.like("Add", x, y)
	}
	return b.head(x)
}

func (b *builder) relu6(x val) val {
	if b.opset < 11 {
		return b.node("Clip", []val{x}, x.typ, x.shape, f32("min", 0), f32("max", 6))
	}
	return b.like("Clip", x, b.number(0), b.number(6))
}

// uNet halves and doubles the resolution, with connections between equal ones.
func (b *builder) uNet() []val {
	x := b.input("image", b.float, []int64{1, 3, 16, 16}, normal(b.r, 1))
	c := one(b, int64(4), 6, 8)
	top := b.like("Relu", b.convOf(x, c, 3, 1, 1))
	down := b.like("Relu", b.convOf(top, 2*c, 3, 2, 1))
	var up val
	if b.chance(2) {
		up = b.node("ConvTranspose", []val{down, b.weight("filter", 2*c, 2*c, c, 2, 2)}, x.typ, top.shape,
			ints("strides", 2, 2))
	} else {
		up = b.convOf(b.double(down), c, 3, 1, 1)
	}
	y := b.like("Relu", b.convOf(b.concat(1, top, up), c, 3, 1, 1))
	out := b.convOf(y, 2, 1, 1, 1)
	if b.chance(2) {
		out = b.like("Sigmoid", out)
	}
	return []val{out}
}

// double is nearest-neighbor upsampling by 2.
func (b *builder) double(x val) val {
	shape := []int64{x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]}
	scales := func() val {
		return b.constant(tensorOf("", ir.Float, []int64{4}, func(i int64) float64 { return []float64{1, 1, 2, 2}[i] }))
	}
	switch {
	case b.opset < 9:
		return b.node("Upsample", []val{x}, x.typ, shape, Attr{"scales", []float32{1, 1, 2, 2}},
			text("mode", "nearest"))
	case b.opset < 10:
		return b.node("Upsample", []val{x, scales()}, x.typ, shape, text("mode", "nearest"))
	case b.opset < 11:
		return b.node("Resize", []val{x, scales()}, x.typ, shape, text("mode", "nearest"))
	case b.opset < 13:
		roi := b.constant(&Tensor{Type: ir.Float, Shape: []int64{0}})
		return b.node("Resize", []val{x, roi, scales()}, x.typ, shape, text("mode", "nearest"))
	}
	return b.node("Resize", []val{x, {}, scales()}, x.typ, shape, text("mode", "nearest"))
}

// attention is self-attention of one or more heads with a square projection, in separate or one joined projection.
func (b *builder) attention(x val, heads int64, causal bool) val {
	batch, steps, width := x.shape[0], x.shape[1], x.last()
	project := func(name string, n int64) val {
		y := b.node("MatMul", []val{x, b.weight(name, width, width, n)}, x.typ, with(x.shape, -1, n))
		if b.chance(2) {
			y = b.bias(y)
		}
		return y
	}
	var q, k, v val
	if b.opset >= 23 && b.chance(2) {
		q, k, v = project("query", width), project("key", width), project("value", width)
		y := b.node("Attention", []val{q, k, v}, x.typ, x.shape, i64("q_num_heads", heads),
			i64("kv_num_heads", heads), i64("is_causal", b.r.Int64N(2)))
		return b.node("MatMul", []val{y, b.weight("projection", width, width, width)}, x.typ, x.shape)
	}
	if b.chance(3) {
		parts := b.split(project("qkv", 3*width), 2, 3)
		q, k, v = parts[0], parts[1], parts[2]
	} else {
		q, k, v = project("query", width), project("key", width), project("value", width)
	}
	split := func(x val, perm ...int64) val { return b.transpose(b.reshape(x, batch, steps, heads, -1), perm...) }
	q, k, v = split(q, 0, 2, 1, 3), split(k, 0, 2, 3, 1), split(v, 0, 2, 1, 3)
	scores := b.node("MatMul", []val{q, k}, x.typ, []int64{batch, heads, steps, steps})
	scores = b.like("Mul", scores, b.number(0.3))
	if causal {
		lowest := one(b, -1e4, -1e9, -3.4028234663852886e38)
		scores = b.like("Add", scores, b.constant(tensorOf("", b.float, []int64{1, 1, steps, steps},
			func(i int64) float64 {
				if i%steps > i/steps {
					return lowest
				}
				return 0
			})))
	}
	y := b.node("MatMul", []val{b.softmax(scores), v}, x.typ, q.shape)
	y = b.reshape(b.transpose(y, 0, 2, 1, 3), batch, steps, width)
	return b.node("MatMul", []val{y, b.weight("projection", width, width, width)}, x.typ, x.shape)
}

// feedForward is a perceptron of two layers, or a gated one.
func (b *builder) feedForward(x val) val {
	width := x.last()
	hidden := width * one(b, int64(2), 4)
	up := func(name string) val {
		return b.node("MatMul", []val{x, b.weight(name, width, width, hidden)}, x.typ, with(x.shape, -1, hidden))
	}
	var y val
	if b.chance(2) {
		gate := up("gate")
		y = b.like("Mul", b.like("Mul", gate, b.like("Sigmoid", gate)), up("up"))
	} else {
		y = b.like("Relu", b.bias(up("up")))
	}
	return b.node("MatMul", []val{y, b.weight("down", hidden, hidden, width)}, x.typ, x.shape)
}

func (b *builder) block(x val, causal bool) val {
	heads := one(b, int64(1), 2, 4)
	x = b.like("Add", x, b.attention(b.layerNorm(x), heads, causal))
	return b.like("Add", x, b.feedForward(b.layerNorm(x)))
}

func (b *builder) transformer() []val {
	width := one(b, int64(8), 16, 20, 32, 64)
	x := b.input("x", b.float, []int64{one(b, int64(1), 2), one(b, int64(1), 5, 8), width}, normal(b.r, 1))
	for range 1 + b.r.IntN(2) {
		x = b.block(x, false)
	}
	if b.chance(2) {
		return []val{x, b.gemm(b.squeeze(b.slice(x, 1, 0, 1), 1))}
	}
	return []val{b.layerNorm(x)}
}

// languageModel has an embedding, blocks, and a head that is tied to the embedding now and then.
func (b *builder) languageModel() []val {
	width, words := one(b, int64(8), 16, 32), one(b, int64(50), 97, 257, 1000, 2203)
	steps := one(b, int64(3), 8)
	ids := b.input("input_ids", ir.Int64, []int64{1, steps}, func(int64) float64 { return float64(b.r.Int64N(words)) })
	table := b.weight("embedding", 1, words, width)
	x := b.node("Gather", []val{table, ids}, b.float, []int64{1, steps, width})
	if b.chance(2) {
		x = b.like("Add", x, b.weight("position", 1, steps, width))
	}
	for range 1 + b.r.IntN(2) {
		x = b.block(x, true)
	}
	x = b.layerNorm(x)
	logits := []int64{1, steps, words}
	switch b.r.IntN(3) {
	case 0:
		b.trait("tied head")
		return []val{b.node("MatMul", []val{x, b.transpose(table, 1, 0)}, b.float, logits)}
	case 1:
		b.trait("tied head of Gemm")
		flat := b.node("Gemm", []val{b.reshape(x, -1, width), table, b.weight("bias", 4, words)}, b.float,
			[]int64{steps, words}, i64("transB", 1))
		return []val{b.reshape(flat, logits...)}
	}
	return []val{b.node("MatMul", []val{x, b.weight("head", width, width, words)}, b.float, logits)}
}

func (b *builder) recurrentNet() []val {
	x := b.input("x", b.float, []int64{one(b, int64(1), 4, 7), one(b, int64(1), 2), b.size()}, normal(b.r, 1))
	for range 1 + b.r.IntN(2) {
		if x.rank() == 3 {
			x = one(b, (*builder).lstm, (*builder).gru, (*builder).rnn)(b, x)
		}
	}
	return []val{b.matMul(x)}
}

// detector has boxes and scores of convolutions, and those that non-maximum suppression selects: their number depends
// on values.
func (b *builder) detector() []val {
	b.sizesByValues()
	x := b.like("Relu", b.convOf(b.image(), 8, 3, 2, 1))
	batch, cells := x.shape[0], x.shape[2]*x.shape[3]
	boxes := b.convOf(x, 4, 1, 1, 1)
	boxes = b.transpose(b.reshape(boxes, batch, 4, cells), 0, 2, 1)
	classes := one(b, int64(1), 3)
	scores := b.like("Sigmoid", b.reshape(b.convOf(x, classes, 1, 1, 1), batch, classes, cells))
	in := []val{boxes, scores,
		b.list(5),
		b.constant(tensorOf("", ir.Float, []int64{1}, func(int64) float64 { return 0.5 })),
		b.constant(tensorOf("", ir.Float, []int64{1}, func(int64) float64 { return 0.4 })),
	}
	chosen := b.node("NonMaxSuppression", in, ir.Int64, []int64{-1, 3})
	if b.chance(2) {
		return []val{chosen}
	}
	return []val{boxes, scores, chosen}
}

// selection has outputs whose size depends on values.
func (b *builder) selection() []val {
	b.sizesByValues()
	x := b.gemm(b.input("x", b.float, []int64{4, b.size()}, normal(b.r, 1)))
	switch b.r.IntN(5) {
	case 4: // rows that are kept, with layers after them
		first := b.squeeze(b.slice(x, 1, 0, 1), 1)
		rows := b.node("Compress", []val{x, b.node("Greater", []val{first, b.number(0)}, ir.Bool, first.shape)},
			x.typ, with(x.shape, 0, -1), i64("axis", 0))
		return []val{x, b.matMul(b.like("Relu", b.matMul(rows)))}
	case 0:
		return []val{b.node("NonZero", []val{b.like("Relu", x)}, ir.Int64, []int64{2, -1})}
	case 1:
		keep := b.node("Greater", []val{b.reshape(x, -1), b.number(0)}, ir.Bool, []int64{x.elems()})
		return []val{x, b.node("Compress", []val{x, keep}, x.typ, []int64{-1})}
	case 2:
		k := 1 + b.r.Int64N(x.last())
		top := val{b.name("v"), x.typ, with(x.shape, -1, k)}
		at := val{b.name("v"), ir.Int64, top.shape}
		b.add(&Node{Name: b.name("TopK"), Op: "TopK", In: []string{x.name, b.list(k).name},
			Out: []string{top.name, at.name}})
		return []val{top, at}
	}
	rounded := b.node("Floor", []val{x}, x.typ, x.shape)
	return []val{b.node("Unique", []val{rounded}, x.typ, []int64{-1})}
}

// durations repeats rows as often as a value says, as speech models of the kind of VITS do, by a Loop whose body has
// weights.
func (b *builder) durations() []val {
	b.sizesByValues()
	x := b.gemm(b.input("x", b.float, []int64{3, b.size()}, normal(b.r, 1)))
	total := b.reshapeScalar(b.mean(b.like("Sigmoid", x), 0, 1))
	trips := b.cast(b.like("Add", b.like("Mul", total, b.number(3)), b.number(1)), ir.Int64)
	if b.chance(2) {
		frames := b.loopOf(x, trips, -1)
		return []val{x, frames}
	}
	positions := b.node("Range", []val{b.scalar(0), trips, b.scalar(1)}, ir.Int64, []int64{-1})
	rows := b.node("Gather", []val{b.weight("table", 1, 8, x.last()), positions}, x.typ, []int64{-1, x.last()})
	return []val{x, b.matMul(rows)}
}

// scalar adds a constant integer.
func (b *builder) scalar(n int64) val {
	return b.constant(tensorOf("", ir.Int64, nil, func(int64) float64 { return float64(n) }))
}

func (b *builder) sizesByValues() {
	b.trait("sizes by values")
	b.m.discontinuous = true
}
