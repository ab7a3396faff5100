package tune

import (
	"maps"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
)

// An outputError is the difference between the outputs and those of the source.
type outputError struct {
	noise, signal map[string]float64
	divergence    float64 // Kullback-Leibler divergence of scores, summed over rows
	rows          int
}

// spread are the runs of the given number of samples, spread over the data: files are often sorted by class.
func (t *tuner) spread(samples int) []int {
	size := t.batch()
	all := max(1, t.set.Len()/size)
	n := min(all, max(1, samples/size))
	few := make([]int, n)
	for i := range few {
		// Evenly over all runs, the first one included.
		few[i] = i * all / n
	}
	return few
}

// order is the samples of these runs.
func (t *tuner) order(runs []int) dataset.Order {
	o := dataset.Order{Size: t.batch(), Index: []int{}}
	for _, run := range runs {
		for k := range min(o.Size, t.set.Len()) {
			o.Index = append(o.Index, run*o.Size+k)
		}
	}
	return o
}

// batch is the number of samples per run.
func (t *tuner) batch() int { return t.set.Size(t.Data.Batch) }

// add accumulates a run of which the source has the outputs want. Integers and strings count where no output has
// floats, and where the size differs.
func (d *outputError) add(padding *verify.Padding, want, got map[string]*ir.Array) {
	floats := false
	for _, w := range want {
		floats = floats || isFloats(w)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w, g := want[name], got[name]
		if g == nil || w.Kind != ir.Dense || g.Kind != ir.Dense {
			continue
		}
		// Another size is noise: taken for exact, it would make its variant the best one.
		if !slices.Equal(w.Shape, g.Shape) {
			d.count(name, w, g)
			continue
		}
		// One wrong class number would outweigh the errors of all scores.
		if floats && !isFloats(w) {
			continue
		}
		for w, g := range padding.Parts(name, w, g) {
			d.count(name, w, g)
			if cols := columns(w); cols > 0 && isFloats(w) && isFloats(g) {
				x, y := numbers(w), numbers(g)
				for i := 0; i < len(x); i += cols {
					d.divergence += divergence(x[i:i+cols], y[i:i+cols])
					d.rows++
				}
			}
		}
	}
}

// count adds the noise and the signal of an output, or of a part of one.
func (d *outputError) count(name string, want, got *ir.Array) {
	noise, signal := verify.Distance(want, got)
	d.noise[name] += noise
	d.signal[name] += signal
}

func isFloats(a *ir.Array) bool {
	return a.Kind == ir.Dense && a.DType.IsFloat() && number.Check(a.DType) == nil
}

func numbers(a *ir.Array) []float64 {
	x := make([]float64, a.Elems())
	number.Read(x, a, 0)
	return x
}

// columns is the number of classes of an output of scores, 0 if it is not one: one row per sample.
func columns(a *ir.Array) int {
	if len(a.Shape) != 2 || a.Shape[1] < 2 {
		return 0
	}
	return int(a.Shape[1])
}

// divergence is the Kullback-Leibler divergence of the softmax of y from that of x.
func divergence(x, y []float64) float64 {
	p, q := verify.Probabilities(x), verify.Probabilities(y)
	sum := 0.0
	for i := range p {
		if p[i] > 0 {
			sum += p[i] * math.Log(p[i]/math.Max(q[i], leastProbability))
		}
	}
	return math.Max(sum, 0)
}

// leastProbability replaces a probability of zero where the source has a positive one.
const leastProbability = 1e-9

// noiseWeight is the weight of the noise-to-signal ratio where there are scores: a tie-breaker between variants that
// change none.
const noiseWeight = 1e-6

// maxSensitivity is the sensitivity for outputs with NaN.
const maxSensitivity = 1e9

// sensitivity is the mean divergence if there are scores and they count, else the mean noise-to-signal ratio of the
// outputs.
func (d *outputError) sensitivity(scores bool) float64 {
	worth, n := 0.0, 0
	// In the order of names: sums of floats depend on their order, and choices on their last bit.
	for _, name := range slices.Sorted(maps.Keys(d.signal)) {
		if signal := d.signal[name]; signal > 0 {
			worth += d.noise[name] / signal
			n++
		}
	}
	worth /= float64(max(1, n))
	if scores && d.rows > 0 {
		worth = d.divergence/float64(d.rows) + noiseWeight*worth
	}
	if !(worth < maxSensitivity) {
		return maxSensitivity
	}
	return worth
}
