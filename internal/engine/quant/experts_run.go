package quant

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// expertBuffers is the scratch memory of a run, for all tokens at one expert.
type expertBuffers struct {
	tokens, result []float32 // input and output; views of float32 tensors
	rows           []float32 // the tokens of an expert, then its outputs
	entered, gated []float32 // outputs of FC1; and of FC3, or of SwiGLU
	product        []byte    // scratch of the products
}

// expertBytes is the layout of the scratch memory: the sizes of its parts in order.
func (x *experts) expertBytes(tokens *ir.Array, workers int) [6]int64 {
	count := tokens.Elems() / int64(x.hidden)
	size := [6]int64{2: 4 * tokens.Elems(), 3: 4 * count * int64(x.layers[enter].n)}
	if tokens.DType != ir.Float {
		size[0], size[1] = 4*tokens.Elems(), 4*tokens.Elems()
	}
	if x.activation == "swiglu" || x.layers[gate] != nil {
		size[4] = 4 * count * int64(x.inner)
	}
	for _, l := range x.layers {
		if l != nil { // an expert has any number of the tokens: the largest tiles are those of one worker
			product := gemm.FloatWork(gemm.Shape{M: int(count), N: l.n, K: l.k}, 1, 1, false)
			size[5] = max(size[5], l.memory()+int64(workers)*product)
		}
	}
	return size
}

func expertWork(n *op.Node, in []*ir.Array, workers int) int64 {
	x, err := expertsOf(n, in)
	if err != nil {
		return 0
	}
	work := int64(0)
	for _, size := range x.expertBytes(in[tokensIn], workers) {
		work += aligned(size)
	}
	return work
}

// buffers divides the scratch memory.
func (x *experts) buffers(c *op.Call) *expertBuffers {
	b, work := &expertBuffers{}, c.Work
	parts := [5]*[]float32{&b.tokens, &b.result, &b.rows, &b.entered, &b.gated}
	for i, size := range x.expertBytes(c.In[tokensIn], c.Pool.Workers()) {
		if i < len(parts) {
			*parts[i] = kernel.Words[float32](work[:size])
		} else {
			b.product = work[:size]
		}
		work = work[aligned(size):]
	}
	if c.Out[0].DType == ir.Float {
		b.tokens, b.result = ir.View[float32](c.In[tokensIn]), ir.View[float32](c.Out[0])
	} else {
		readFloats(b.tokens, c.In[tokensIn], 0)
	}
	return b
}

func runExperts(c *op.Call) error {
	if c.Out[0].Elems() == 0 {
		return nil
	}
	x, err := expertsOf(c.Node, c.In)
	if err != nil {
		return err
	}
	if packed, ok := c.State.([3][]*kernel.Quantized); ok {
		for i, l := range x.layers {
			if l != nil {
				l.packed = packed[i]
			}
		}
	}
	b := x.buffers(c)
	// Experts add their outputs to it; a token has those of several.
	clear(b.result)
	for e, tokens := range x.route(c) {
		if len(tokens) > 0 {
			x.run(c, b, e, tokens)
		}
	}
	switch c.Out[0].DType {
	case ir.Float16:
		kernel.F16FromF32(ir.View[uint16](c.Out[0]), b.result)
	case ir.BFloat16:
		kernel.BF16FromF32(ir.View[uint16](c.Out[0]), b.result)
	}
	return nil
}

// A routedToken is a token at an expert, and the weight of the expert's output.
type routedToken struct {
	token  int
	weight float32
}

// route assigns tokens to experts. Of equal scores the last ones count, as in ONNX Runtime.
func (x *experts) route(c *op.Call) [][]routedToken {
	by := make([][]routedToken, x.count)
	scores, order := make([]float32, x.count), make([]int, x.count)
	weights := scores
	for t := range int(c.In[routerIn].Elems()) / x.count {
		readFloats(scores, c.In[routerIn], t*x.count)
		kernel.Softmax(scores, scores)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(scores[j], scores[i]), j-i) })
		normalize := x.normalize || x.quantized
		if own := c.Opt(routerWeights); x.quantized && own != nil {
			weights, normalize = make([]float32, x.count), x.normalize
			readFloats(weights, own, t*x.count)
		}
		sum := float32(0)
		for _, e := range order[:x.k] {
			sum += weights[e]
		}
		for _, e := range order[:x.k] {
			w := weights[e]
			if normalize {
				w /= sum
			}
			if w > 0 || w < 0 { // not NaN
				by[e] = append(by[e], routedToken{t, w})
			}
		}
	}
	return by
}

// run adds the outputs of expert e.
func (x *experts) run(c *op.Call, b *expertBuffers, e int, tokens []routedToken) {
	m := len(tokens)
	// Tokens of an expert are gathered, so that its weights are read once for all of them.
	for i, r := range tokens {
		copy(part(b.rows, i, x.hidden), part(b.tokens, r.token, x.hidden))
	}
	enters := x.layers[enter]
	entered := b.entered[:m*enters.n]
	enters.product(c, e, m, entered, b.rows, b.product)
	if l := x.layers[gate]; l != nil {
		l.product(c, e, m, b.gated, b.rows, b.product)
	}
	c.Pool.Rows(m, chunk/enters.n+1, func(from, to int) {
		for i := from; i < to; i++ {
			x.activate(part(entered, i, enters.n), b, i)
		}
	})
	between := entered
	if x.fused() {
		between = b.gated
	}
	x.layers[leave].product(c, e, m, b.rows, between, b.product)
	for i, r := range tokens {
		kernel.Axpy(part(b.result, r.token, x.hidden), r.weight, part(b.rows, i, x.hidden))
	}
}

// activate applies the activation function to row i of the output of FC1.
func (x *experts) activate(row []float32, b *expertBuffers, i int) {
	switch x.activation {
	case "relu":
		kernel.Relu(row, row)
	case "gelu":
		kernel.GeluTanh(row, row)
	case "silu":
		kernel.Silu(row, row)
	case "swiglu":
		x.swiGLU(row, part(b.gated, i, x.inner))
		return
	}
	if x.layers[gate] != nil {
		kernel.Mul(row, row, part(b.gated, i, x.inner))
	}
}

// swiGLU computes g·sigmoid(alpha·g)·(v + beta) of gates g and values v, which are clamped: to other if FC1 computes
// both, else to the row of gates from the values in other.
func (x *experts) swiGLU(row, other []float32) {
	to, step, values, first := other, 1, row, x.inner
	switch {
	case !x.fused():
		to, values, first = row, other, 0
	case x.interleaved:
		step, first = 2, 1
	}
	for i := range to {
		g := min(row[i*step], x.limit)
		v := max(min(values[first+i*step], x.limit), -x.limit)
		to[i] = swish(g, x.alpha) * (v + x.beta)
	}
}

func swish(v, alpha float32) float32 {
	var s, t [1]float32
	s[0] = v
	kernel.Swish(s[:], s[:], t[:], alpha)
	return s[0]
}
