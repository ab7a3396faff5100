package prune

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// pruneByInverse is SparseGPT as published, for one output and one block: with the inverse of the Hessian, from which
// the row and column of each input are eliminated.
func pruneByInverse(w []float64, h *mat.SymDense, amount int) []float64 {
	k := len(w)
	inverses, scores := make([]mat.Dense, k), make([]float64, k)
	for i := range k {
		left := mat.NewDense(k-i, k-i, nil)
		left.Copy(h.SliceSym(i, k))
		if err := inverses[i].Inverse(left); err != nil {
			panic(err)
		}
		scores[i] = w[i] * w[i] / inverses[i].At(0, 0)
	}
	out := slices.Clone(w)
	for i, pruned := range smallest(scores, int64(amount)) {
		if !pruned {
			continue
		}
		e := out[i] / inverses[i].At(0, 0)
		for j := i; j < k; j++ {
			out[j] -= e * inverses[i].At(0, j-i)
		}
		out[i] = 0
	}
	return out
}

func TestSparseGPTIsTheAlgorithmWithTheInverse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{8, 33, 100} {
		x, w := make([]float32, 300*k), make([]float32, k)
		for i := range x {
			x[i] = float32(r.NormFloat64())
			if i%k > 0 {
				x[i] += 0.7 * x[i-1]
			}
		}
		wide, h := make([]float64, k), mat.NewSymDense(k, nil)
		for i := range w {
			w[i] = float32(r.NormFloat64())
			wide[i] = float64(w[i])
			for j := i; j < k; j++ {
				for row := 0; row < len(x); row += k {
					h.SetSym(i, j, h.At(i, j)+float64(x[row+i])*float64(x[row+j]))
				}
			}
		}
		pool := op.NewPool(2)
		defer pool.Close()
		m := hessian.New(pool, k)
		m.Add(x)
		f, err := m.Factor(t.Context(), hessian.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &layer{weight: &weight{before: &ir.Tensor{Spec: ir.Spec{DType: ir.Float}}}, groups: 1, k: k, n: 1, channels: k,
			out: 1, channel: 1, tap: 1, amount: 0.5}
		new(SparseGPT).solve(&samplePass{pool: pool}, l, w, 0, f, nil)
		for i, want := range pruneByInverse(wide, h, int(prunedCount(0.5, int64(k)))) {
			if math.Abs(float64(w[i])-want) > 1e-3 || (w[i] == 0) != (want == 0) {
				t.Errorf("%d inputs: element %d is %g, want %g", k, i, w[i], want)
			}
		}
	}
}

// Patterns hold, and a second run changes nothing, in matrices of several blocks and columns; groups of 7 do not divide
// a block.
func TestSparseGPTKeepsPatterns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, options := range [][]string{{"pattern", "2:4"}, {"pattern", "4:8"}, {"pattern", "3:7"}, {"amount", "0.6"}} {
		b := newBench(t)
		values := make([]float64, 300*140)
		for i := range values {
			values[i] = r.NormFloat64()
		}
		w := b.weight("w", ir.Float16, []int64{300, 140}, values...)
		x := b.scaled(ir.Float16, []int64{64, 300}, 0)
		b.g.AddOutput(b.node("MatMul", []*ir.Value{x, w}))
		b.run(sparseGPTMethod, options...)
		first, zeros := b.values(w), 0
		for i, v := range first {
			if v == 0 {
				zeros++
			}
			if row := i / 140; options[1] == "2:4" && row%4 == 3 {
				n := 0
				for k := range 4 {
					if first[i-k*140] != 0 {
						n++
					}
				}
				if n != 2 {
					t.Fatalf("%d of 4 elements up to %d stay", n, i)
				}
			}
		}
		want := map[string]int{"2:4": 21000, "4:8": 37 * 4 * 140, "3:7": (42*4 + 3) * 140, "0.6": 25200}[options[1]]
		if zeros != want {
			t.Errorf("%v: %d zeros, want %d", options, zeros, want)
		}
		b.run(sparseGPTMethod, options...)
		if !slices.Equal(first, b.values(w)) {
			t.Errorf("%v: a second run changes the weight", options)
		}
	}
}
