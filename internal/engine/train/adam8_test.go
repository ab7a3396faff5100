package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// A number is quantized to the nearest value of the codebook.
func TestNearestValue(t *testing.T) {
	for _, b := range []*codebook{signedBook(), unsignedBook()} {
		if !slices.IsSorted(b.values[:]) || b.values[b.zero] != 0 || b.values[255] != 1 {
			t.Fatalf("codebook %v", b.values)
		}
		for c, v := range b.values {
			if got := b.index(v); int(got) != c {
				t.Errorf("index of %v is %d, want %d", v, got, c)
			}
		}
		r := rand.New(rand.NewPCG(1, 1))
		for range 20000 {
			x := float32(math.Pow(10, -8*r.Float64()))
			if b.values[0] < 0 && r.IntN(2) == 0 {
				x = -x
			}
			checkNearest(t, b, x)
		}
	}
}

func checkNearest(t *testing.T, b *codebook, x float32) {
	t.Helper()
	best := math.Inf(1)
	for _, v := range b.values {
		if v == 0 && b.zero == 0 {
			continue
		}
		best = min(best, math.Abs(float64(v)-float64(x)))
	}
	if got := math.Abs(float64(b.values[b.index(x)]) - float64(x)); got > best+1e-7*math.Abs(float64(x)) {
		t.Errorf("%v has index %d of %v, with error %v; the nearest has error %v", x, b.index(x),
			b.values[b.index(x)], got, best)
	}
}

func TestZeroMoments(t *testing.T) {
	k := quantizedMoments{books: [2]*codebook{signedBook(), unsignedBook()}}
	for i := range k.values {
		k.values[i], k.scales[i] = make([]byte, 300), make([]float32, 2)
	}
	states := [2][]float32{make([]float32, 300), make([]float32, 300)}
	for range 2 {
		states[0][7], states[1][299] = 1, 1
		k.load(0, &states)
		if slices.Max(states[0]) != 0 || slices.Min(states[0]) != 0 || slices.Max(states[1]) != 0 {
			t.Fatalf("states are %v", states)
		}
		k.store(0, states) // zeros again
	}
}

// A regression with a hidden layer has the same loss with 8-bit moments as with 32-bit moments.
func TestAdam8(t *testing.T) {
	full, quantized := regress(t, "AdamUpdate"), regress(t, "Adam8Update")
	start := regression(newNet()).loss
	t.Logf("loss %g, with 32 bits %g, with 8 bits %g", start, full, quantized)
	if full > start/20 {
		t.Fatalf("Adam itself does not learn: %g of %g", full, start)
	}
	if quantized > 1.2*full {
		t.Errorf("loss %g, with 32-bit moments %g", quantized, full)
	}
}

// A net is y = b·tanh(a·x), with 4 inputs and 300 hidden units.
type net struct{ a, b *ir.Array }

func newNet() net {
	a, b := values[float32](1, 300, 4), values[float32](2, 300)
	for i, v := range ir.View[float32](b) {
		ir.View[float32](b)[i] = v / 17
	}
	return net{a, b}
}

type result struct {
	loss   float64
	da, db *ir.Array
}

// regression is the mean squared error on 64 samples of sin(2x₀)+x₁·x₂, and its gradients.
func regression(n net) result {
	r := result{da: ir.NewArray(ir.Float, n.a.Shape...), db: ir.NewArray(ir.Float, n.b.Shape...)}
	a, b, da, db := ir.View[float32](n.a), ir.View[float32](n.b), ir.View[float32](r.da), ir.View[float32](r.db)
	xs := ir.View[float32](values[float32](3, 64, 4))
	for s := range 64 {
		x, y, hidden := xs[s*4:s*4+4], 0.0, make([]float64, len(b))
		for h := range b {
			sum := 0.0
			for k, v := range x {
				sum += float64(a[h*4+k] * v)
			}
			hidden[h] = math.Tanh(sum)
			y += hidden[h] * float64(b[h])
		}
		d := y - math.Sin(2*float64(x[0])) - float64(x[1]*x[2])
		r.loss += d * d / 64
		for h := range b {
			db[h] += float32(d * hidden[h] / 32)
			for k, v := range x {
				da[h*4+k] += float32(d * float64(b[h]) * (1 - hidden[h]*hidden[h]) / 32 * float64(v))
			}
		}
	}
	return r
}

// regress trains for 300 steps and returns the last loss.
func regress(t *testing.T, typ string) float64 {
	n := newNet()
	states := map[*ir.Array][]*ir.Array{}
	for _, w := range []*ir.Array{n.a, n.b} {
		size := w.Elems()
		states[w] = []*ir.Array{ir.NewArray(ir.Float, w.Shape...), ir.NewArray(ir.Float, w.Shape...)}
		if typ == "Adam8Update" {
			blocks := (size + quantizedBlock - 1) / quantizedBlock
			states[w] = []*ir.Array{ir.NewArray(ir.Uint8, size), ir.NewArray(ir.Uint8, size),
				ir.NewArray(ir.Float, blocks), ir.NewArray(ir.Float, blocks)}
		}
	}
	for step := range 300 {
		r, hyper := regression(n), optest.Array(0.003, float32(step+1), 1, 0)
		for _, p := range [][2]*ir.Array{{n.a, r.da}, {n.b, r.db}} {
			results(t, typ, 1, append(append([]*ir.Array{p[0], p[1]}, states[p[0]]...), hyper))
		}
	}
	return regression(n).loss
}
