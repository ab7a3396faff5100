package recurrent_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/recurrent"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A quantizedLSTM is the inputs of DynamicQuantizeLSTM, forward, with a scale per column.
type quantizedLSTM struct {
	steps, batch, input, hidden int
	x, bias                     []float32
	w, r                        []int8
	scaleW, scaleR              []float32
	zeroW, zeroR                []int8
}

func newQuantizedLSTM(seed uint64) *quantizedLSTM {
	r := rand.New(rand.NewPCG(seed, 1))
	q := &quantizedLSTM{steps: 5, batch: 2, input: 7, hidden: 6}
	floats := func(n int, scale, at float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(at + scale*r.NormFloat64())
		}
		return x
	}
	codes := func(n int) []int8 {
		x := make([]int8, n)
		for i := range x {
			x[i] = int8(r.IntN(256) - 128)
		}
		return x
	}
	n := 4 * q.hidden
	q.x, q.bias = floats(q.steps*q.batch*q.input, 1, 0.3), floats(2*n, 0.2, 0)
	q.w, q.r, q.zeroW, q.zeroR = codes(q.input*n), codes(q.hidden*n), codes(n), codes(n)
	q.scaleW, q.scaleR = make([]float32, n), make([]float32, n)
	for i := range n {
		q.scaleW[i], q.scaleR[i] = 0.002+0.003*r.Float32(), 0.002+0.003*r.Float32()
	}
	return q
}

// product adds to c what rows of a, quantized by their range, give with a matrix of bytes.
func (q *quantizedLSTM) product(c []float64, a []float32, w []int8, scale []float32, zero []int8) {
	n := 4 * q.hidden
	k := len(w) / n
	by, at := kernel.DynamicScale(kernel.MinMax(a))
	for row := range len(a) / k {
		for j := range n {
			sum := 0
			for i := range k {
				code := min(255, max(0, int(math.RoundToEven(float64(a[row*k+i]/by)))+int(at)))
				sum += (code - int(at)) * (int(w[i*n+j]) - int(zero[j]))
			}
			c[row*n+j] += float64(sum) * float64(by) * float64(scale[j])
		}
	}
}

// run is the plain reference implementation: the outputs of all steps.
func (q *quantizedLSTM) run() []float64 {
	n := 4 * q.hidden
	inputs := make([]float64, q.steps*q.batch*n)
	q.product(inputs, q.x, q.w, q.scaleW, q.zeroW)
	h, c := make([]float32, q.batch*q.hidden), make([]float64, q.batch*q.hidden)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	var out []float64
	for t := range q.steps {
		gates := inputs[t*q.batch*n:][:q.batch*n]
		q.product(gates, h, q.r, q.scaleR, q.zeroR)
		for b := range q.batch {
			for i := range q.hidden {
				gate := func(k int) float64 {
					at := k*q.hidden + i
					return gates[b*n+at] + float64(q.bias[at]) + float64(q.bias[n+at])
				}
				state := &c[b*q.hidden+i]
				*state = sigmoid(gate(2))**state + sigmoid(gate(0))*math.Tanh(gate(3))
				y := sigmoid(gate(1)) * math.Tanh(*state)
				h[b*q.hidden+i] = float32(y)
				out = append(out, y)
			}
		}
	}
	return out
}

func (q *quantizedLSTM) inputs() []*ir.Array {
	n := int64(4 * q.hidden)
	return []*ir.Array{
		ir.ArrayOf(q.x, int64(q.steps), int64(q.batch), int64(q.input)), ir.ArrayOf(q.w, 1, int64(q.input), n),
		ir.ArrayOf(q.r, 1, int64(q.hidden), n), ir.ArrayOf(q.bias, 1, 2*n),
		nil, nil, nil, nil, ir.ArrayOf(q.scaleW, 1, n), ir.ArrayOf(q.zeroW, 1, n), ir.ArrayOf(q.scaleR, 1, n),
		ir.ArrayOf(q.zeroR, 1, n),
	}
}

func lstmCase(q *quantizedLSTM, constant ...int) optest.Case {
	c := optest.Case{Domain: "com.microsoft", Type: "DynamicQuantizeLSTM", Version: 1, In: q.inputs(),
		Attrs: []*ir.Attr{ir.IntAttr("hidden_size", int64(q.hidden))}}
	c.Consts = constant
	return c
}

// The kernel, prepacked or not, equals the plain implementation, up to codes of a state that is halfway between two.
func TestDynamicQuantizeLSTMEqualsThePlainImplementation(t *testing.T) {
	for seed := range uint64(5) {
		q := newQuantizedLSTM(seed)
		want := q.run()
		for _, constant := range [][]int{nil, {1, 2, 8, 9, 10, 11}} {
			out, err := optest.Run(recurrent.Ops(), lstmCase(q, constant...))
			if err != nil {
				t.Fatal(err)
			}
			for i, y := range ir.View[float32](out[0]) {
				if d := math.Abs(float64(y) - want[i]); !(d < 2e-3) {
					t.Fatalf("seed %d, constants %v: output %d is %v, want %v", seed, constant, i, y, want[i])
				}
			}
		}
	}
}

func TestMalformedDynamicQuantizeLSTM(t *testing.T) {
	q := newQuantizedLSTM(1)
	for at, a := range map[int]*ir.Array{
		1: ir.ArrayOf(make([]float32, 7*24), 1, 7, 24), 2: ir.ArrayOf(make([]int8, 24), 1, 1, 24),
		8: ir.ArrayOf(make([]float32, 3), 3),
		9: ir.ArrayOf(make([]uint8, 1), 1), 10: nil, 11: ir.ArrayOf(make([]int8, 23), 1, 23),
	} {
		for _, constant := range [][]int{nil, {1, 2, 8, 9, 10, 11}} {
			c := lstmCase(q, constant...)
			c.In[at] = a
			if out, err := optest.Run(recurrent.Ops(), c); err == nil {
				t.Errorf("input %d is %s: got %s", at, a, out[0])
			}
		}
	}
}
