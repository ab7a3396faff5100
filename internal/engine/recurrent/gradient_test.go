package recurrent_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/recurrent"
	"github.com/mcompress/mcompress/ir"
)

// A reference is RNN, GRU and LSTM in float64, written from the definitions of ONNX, one number at a time.
type reference struct {
	kind                 string
	steps, batch, in, h  int
	direction            string
	activations          []string // of one direction
	alphas, betas        []float32
	clip                 float64
	layout               int
	coupled, linear      bool
	lens                 []int32
	noBias, noState, noP bool
}

func (r reference) gates() int { return map[string]int{"RNN": 1, "GRU": 3, "LSTM": 4}[r.kind] }

func (r reference) directions() int {
	if r.direction == "bidirectional" {
		return 2
	}
	return 1
}

// inputs are X, W, R, B, sequence_lens, initial_h, initial_c and P.
func (r reference) inputs() []*ir.Array {
	d, g := int64(r.directions()), int64(r.gates()*r.h)
	x, state := []int64{int64(r.steps), int64(r.batch), int64(r.in)}, []int64{d, int64(r.batch), int64(r.h)}
	if r.layout == 1 {
		x[0], x[1], state[0], state[1] = x[1], x[0], state[1], state[0]
	}
	random := func(seed uint64, shape ...int64) *ir.Array {
		a, n := ir.NewArray(ir.Double, shape...), rand.New(rand.NewPCG(seed, 3))
		for i := range ir.View[float64](a) {
			ir.View[float64](a)[i] = 0.6 * n.NormFloat64()
		}
		return a
	}
	in := []*ir.Array{random(1, x...), random(2, d, g, int64(r.in)), random(3, d, g, int64(r.h)), nil, nil, nil, nil,
		nil}
	if !r.noBias {
		in[3] = random(4, d, 2*g)
	}
	if r.lens != nil {
		in[4] = ir.ArrayOf(r.lens, int64(r.batch))
	}
	if !r.noState {
		in[5] = random(5, state...)
		if r.kind == "LSTM" {
			in[6] = random(6, state...)
		}
	}
	if r.kind == "LSTM" && !r.noP {
		in[7] = random(7, d, int64(3*r.h))
	}
	return in
}

func (r reference) attrs() []*ir.Attr {
	attrs := []*ir.Attr{ir.IntAttr("hidden_size", int64(r.h)), ir.IntAttr("layout", int64(r.layout)),
		ir.StringAttr("direction", r.direction)}
	if r.activations != nil {
		a := &ir.Attr{Name: "activations", Type: ir.AttrStrings}
		for range r.directions() {
			a.Strings = append(a.Strings, r.activations...)
		}
		attrs = append(attrs, a)
		for i, list := range [][]float32{r.alphas, r.betas} {
			attrs = append(attrs, &ir.Attr{Name: []string{"activation_alpha", "activation_beta"}[i],
				Type: ir.AttrFloats, Floats: slices.Repeat(list, r.directions())})
		}
	}
	if r.clip > 0 {
		attrs = append(attrs, ir.FloatAttr("clip", float32(r.clip)))
	}
	if r.coupled {
		attrs = append(attrs, ir.IntAttr("input_forget", 1))
	}
	if r.linear {
		attrs = append(attrs, ir.IntAttr("linear_before_reset", 1))
	}
	return attrs
}

// apply is activation k of a limited sum; the alphas and betas of the tests are of activation 0.
func (r reference) apply(k int, x float64) float64 {
	names := r.activations
	if names == nil {
		names = map[string][]string{"RNN": {"Tanh"}, "GRU": {"Sigmoid", "Tanh"},
			"LSTM": {"Sigmoid", "Tanh", "Tanh"}}[r.kind]
	}
	if r.clip > 0 && k < 2 {
		x = min(max(x, -r.clip), r.clip)
	}
	a, b := 0.0, 0.0
	if len(r.alphas) > 0 {
		a = float64(r.alphas[0])
	}
	if len(r.betas) > 0 {
		b = float64(r.betas[0])
	}
	switch names[k] {
	case "Tanh":
		return math.Tanh(x)
	case "Relu":
		return max(x, 0)
	case "Affine":
		return a*x + b
	case "LeakyRelu":
		return max(x, 0) + a*min(x, 0)
	case "ThresholdedRelu":
		if x > a {
			return x
		}
		return 0
	case "ScaledTanh":
		return a * math.Tanh(b*x)
	case "HardSigmoid":
		return max(0, min(1, a*x+b))
	case "Elu":
		return max(x, 0) + a*(math.Exp(min(x, 0))-1)
	case "Softsign":
		return x / (1 + math.Abs(x))
	case "Softplus":
		return math.Log(1 + math.Exp(x))
	}
	return 1 / (1 + math.Exp(-x))
}

// run returns Y, Y_h and Y_c.
func (r reference) run(in []*ir.Array) []*ir.Array {
	num := func(i int) []float64 {
		if in[i] == nil {
			return nil
		}
		return ir.View[float64](in[i])
	}
	d, g := r.directions(), r.gates()*r.h
	x, w, rr, bias, h0, c0, p := num(0), num(1), num(2), num(3), num(5), num(6), num(7)
	y, yh, yc := make([]float64, r.steps*d*r.batch*r.h), make([]float64, d*r.batch*r.h), make([]float64, d*r.batch*r.h)
	stateAt := func(dir, n int) int {
		if r.layout == 1 {
			return (n*d + dir) * r.h
		}
		return (dir*r.batch + n) * r.h
	}
	for dir := range d {
		for n := range r.batch {
			h, c := make([]float64, r.h), make([]float64, r.h)
			if h0 != nil {
				copy(h, h0[stateAt(dir, n):])
			}
			if c0 != nil {
				copy(c, c0[stateAt(dir, n):])
			}
			length := r.steps
			if r.lens != nil {
				length = int(r.lens[n])
			}
			for i := range length {
				t := i
				if r.direction == "reverse" || dir == 1 {
					t = length - 1 - i
				}
				row, out := t*r.batch+n, ((t*d+dir)*r.batch+n)*r.h
				if r.layout == 1 {
					row, out = n*r.steps+t, ((n*r.steps+t)*d+dir)*r.h
				}
				b := func(i int) float64 {
					if bias == nil {
						return 0
					}
					return bias[dir*2*g+i]
				}
				input := func(k int) float64 { // without recurrence
					sum := b(k)
					for j := range r.in {
						sum += x[row*r.in+j] * w[(dir*g+k)*r.in+j]
					}
					return sum
				}
				recur := func(k int, v []float64) float64 {
					sum := b(g + k)
					for j := range v {
						sum += v[j] * rr[(dir*g+k)*r.h+j]
					}
					return sum
				}
				peep := func(part, j int, c []float64) float64 {
					if p == nil {
						return 0
					}
					return p[(dir*3+part)*r.h+j] * c[j]
				}
				nh, nc := make([]float64, r.h), slices.Clone(c)
				switch r.kind {
				case "RNN":
					for j := range nh {
						nh[j] = r.apply(0, input(j)+recur(j, h))
					}
				case "GRU":
					reset := make([]float64, r.h)
					for j := range nh {
						reset[j] = r.apply(0, input(r.h+j)+recur(r.h+j, h))
					}
					gated := slices.Clone(h)
					for j := range gated {
						gated[j] *= reset[j]
					}
					for j := range nh {
						z := r.apply(0, input(j)+recur(j, h))
						k := 2*r.h + j
						sum := input(k) + recur(k, gated)
						if r.linear {
							sum = input(k) + reset[j]*recur(k, h)
						}
						nh[j] = (1-z)*r.apply(1, sum) + z*h[j]
					}
				case "LSTM":
					for j := range nh {
						in := r.apply(0, input(j)+recur(j, h)+peep(0, j, c))
						forget := 1 - in
						if !r.coupled {
							forget = r.apply(0, input(2*r.h+j)+recur(2*r.h+j, h)+peep(2, j, c))
						}
						nc[j] = forget*c[j] + in*r.apply(1, input(3*r.h+j)+recur(3*r.h+j, h))
					}
					for j := range nh {
						nh[j] = r.apply(0, input(r.h+j)+recur(r.h+j, h)+peep(1, j, nc)) * r.apply(2, nc[j])
					}
				}
				h, c = nh, nc
				copy(y[out:], h)
			}
			copy(yh[stateAt(dir, n):], h)
			copy(yc[stateAt(dir, n):], c)
		}
	}
	shape := []int64{int64(r.steps), int64(d), int64(r.batch), int64(r.h)}
	state := []int64{int64(d), int64(r.batch), int64(r.h)}
	if r.layout == 1 {
		shape, state = []int64{shape[2], shape[0], shape[1], shape[3]}, []int64{state[1], state[0], state[2]}
	}
	return []*ir.Array{ir.ArrayOf(y, shape...), ir.ArrayOf(yh, state...), ir.ArrayOf(yc, state...)}
}

func references() []reference {
	var all []reference
	for _, kind := range []string{"RNN", "GRU", "LSTM"} {
		base := reference{kind: kind, steps: 4, batch: 3, in: 2, h: 3, direction: "forward"}
		for i, direction := range []string{"forward", "reverse", "bidirectional"} {
			r := base
			r.direction, r.layout, r.linear, r.coupled = direction, i%2, i == 1, i == 2
			all = append(all, r)
			r.layout, r.lens, r.linear = 1-r.layout, []int32{4, 0, 2}, !r.linear
			all = append(all, r)
		}
		plain := base
		plain.noBias, plain.noState, plain.noP = true, true, true
		clipped := base
		clipped.clip, clipped.linear = 0.4, true
		all = append(all, plain, clipped)
	}
	for _, f := range []struct {
		name  string
		alpha float32
		beta  float32
	}{{"Relu", 0, 0}, {"Affine", 0.7, 0.1}, {"LeakyRelu", 0.2, 0}, {"ThresholdedRelu", 0.3, 0},
		{"ScaledTanh", 1.2, 0.8}, {"HardSigmoid", 0.3, 0.4}, {"Elu", 0.7, 0}, {"Softsign", 0, 0}, {"Softplus", 0, 0}} {
		for _, clip := range []float64{0, 0.5} {
			r := reference{kind: "RNN", steps: 3, batch: 2, in: 2, h: 3, direction: "bidirectional",
				activations: []string{f.name}, clip: clip}
			r.alphas, r.betas = []float32{f.alpha}, []float32{f.beta}
			all = append(all, r)
		}
	}
	return append(all, reference{kind: "LSTM", steps: 3, batch: 2, in: 2, h: 3, direction: "forward",
		activations: []string{"HardSigmoid", "Softsign", "Softplus"}, alphas: []float32{0.2}, betas: []float32{0.5}})
}

// Gradients agree with finite differences of the reference in float64, and the reference with the operator.
func TestGradientsEqualFiniteDifferences(t *testing.T) {
	for i, r := range references() {
		t.Run(fmt.Sprintf("%s_%s_%d", r.kind, r.direction, i), func(t *testing.T) { r.check(t) })
	}
}

func (r reference) check(t *testing.T) {
	in := r.inputs()
	out := r.run(in)
	r.compareForward(t, in, out)
	outputs := 2
	if r.kind == "LSTM" {
		outputs = 3
	}
	var dy []*ir.Array
	for i := range outputs {
		dy = append(dy, ir.NewArray(ir.Double, out[i].Shape...))
		for j := range ir.View[float64](dy[i]) {
			ir.View[float64](dy[i])[j] = math.Sin(float64(7*i + 3*j + 1))
		}
	}
	got := r.gradients(t, ir.Double, in, out[0], dy)
	loss := func() (sum float64) {
		for i, y := range r.run(in)[:outputs] {
			for j, v := range ir.View[float64](y) {
				sum += v * ir.View[float64](dy[i])[j]
			}
		}
		return sum
	}
	const h = 1e-5
	for i, at := range []int{0, 1, 2, 3, 5, 6, 7} {
		if in[at] == nil {
			continue
		}
		x := ir.View[float64](in[at])
		for j := range x {
			was := x[j]
			x[j] = was + h
			above := loss()
			x[j] = was - h
			below := loss()
			x[j] = was
			want, is := (above-below)/(2*h), ir.View[float64](got[i])[j]
			if !(math.Abs(want-is) <= 1e-6*(1+math.Abs(want))) {
				t.Fatalf("gradient of input %d, element %d is %.9g, finite difference %.9g", at, j, is, want)
			}
		}
	}
	r.compareSingle(t, in, out[0], dy, got)
}

// gradients runs the operator.
func (r reference) gradients(t *testing.T, dt ir.DType, in []*ir.Array, y *ir.Array, dy []*ir.Array) []*ir.Array {
	t.Helper()
	args := append(append(slices.Clone(in), y), dy...)
	for i, a := range args {
		if a != nil && a.DType == ir.Double && dt == ir.Float {
			args[i] = single(a)
		}
	}
	got, err := optest.Run(recurrent.Ops(), optest.Case{Domain: "mcompress", Type: r.kind + "Grad", Version: 1,
		Outputs: 7, Workers: 2, In: args, Attrs: r.attrs()})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func single(a *ir.Array) *ir.Array {
	out := ir.NewArray(ir.Float, a.Shape...)
	for i, v := range ir.View[float64](a) {
		ir.View[float32](out)[i] = float32(v)
	}
	return out
}

// compareSingle compares gradients in float32 with those in float64.
func (r reference) compareSingle(t *testing.T, in []*ir.Array, y *ir.Array, dy, want []*ir.Array) {
	t.Helper()
	for i, a := range r.gradients(t, ir.Float, in, y, dy) {
		closeTo(t, fmt.Sprintf("float32 gradient %d", i), a, want[i])
	}
}

// compareForward compares the operator with the reference.
func (r reference) compareForward(t *testing.T, in, want []*ir.Array) {
	t.Helper()
	args := slices.Clone(in)
	for i, a := range args {
		if a != nil && a.DType == ir.Double {
			args[i] = single(a)
		}
	}
	outputs := 2
	if r.kind == "LSTM" {
		outputs = 3
	}
	out, err := optest.Run(recurrent.Ops(), optest.Case{Type: r.kind, Version: 22, Outputs: outputs, In: args,
		Attrs: r.attrs()})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range out {
		closeTo(t, fmt.Sprintf("output %d", i), a, want[i])
	}
}

func closeTo(t *testing.T, what string, got, want *ir.Array) {
	t.Helper()
	for j, v := range ir.View[float32](got) {
		w := ir.View[float64](want)[j]
		if !(math.Abs(float64(v)-w) <= 1e-5*(1+math.Abs(w))) {
			t.Fatalf("%s: element %d is %v, want %v", what, j, v, w)
		}
	}
}

// Activations whose derivative is ambiguous are refused.
func TestGradientRefusesNegativeSlopes(t *testing.T) {
	r := reference{kind: "RNN", steps: 2, batch: 1, in: 1, h: 1, direction: "forward",
		activations: []string{"LeakyRelu"}, alphas: []float32{-0.1}}
	in := r.inputs()
	y := r.run(in)[0]
	if _, err := optest.Run(recurrent.Ops(), optest.Case{Domain: "mcompress", Type: "RNNGrad", Version: 1, Outputs: 3,
		In: append(in, y, y), Attrs: r.attrs()}); err == nil {
		t.Error("no error")
	}
}

// Nodes with random defects return an error, or a result.
func TestMalformedGradientsDoNotPanic(t *testing.T) {
	for i, r := range references() {
		in := r.inputs()
		out := r.run(in)
		node := optest.Case{Domain: "mcompress", Type: r.kind + "Grad", Version: 1, Outputs: 7,
			In: append(in, out[0], out[0], out[1]), Attrs: r.attrs()}
		for seed := range uint64(20) {
			broken := node.Malformed(rand.New(rand.NewPCG(seed, uint64(i))),
				optest.Defects{Ints: []string{"hidden_size", "layout", "linear_before_reset", "input_forget"}})
			if text := optest.Panic(optest.Row(recurrent.Ops(), node), broken); text != "" {
				t.Fatalf("%v: %s", broken, text)
			}
		}
	}
}
