package metric

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// A task is random outputs of a model and of its reference, with labels.
type task struct {
	metric     string
	shape      []int64 // of an output of one sample
	labelShape []int64
	output     func(r *rand.Rand) float64 // nil for normal numbers
	label      func(r *rand.Rand) float64
	integers   bool // labels
	samples    int
	mask       bool
}

var tasks = map[string]task{
	"classes": {metric: "top1", shape: []int64{7}, label: upTo(7), integers: true},
	"ties":    {metric: "top1", shape: []int64{4}, output: upTo(2), label: upTo(4), integers: true},
	"classes of words": {metric: "top1", shape: []int64{3, 5}, labelShape: []int64{3}, label: orIgnored(5),
		integers: true},
	"best of five":   {metric: "top5", shape: []int64{12}, output: upTo(9), label: upTo(12), integers: true},
	"f1 of classes":  {metric: "f1", shape: []int64{5}, label: orIgnored(5), integers: true},
	"f1 of activity": {metric: "f1", shape: []int64{1}, output: fraction, label: upTo(2), integers: true},
	"f1 of pixels": {metric: "f1", shape: []int64{3, 4, 6}, labelShape: []int64{4, 6}, label: orIgnored(3),
		integers: true},
	"texts":           {metric: "cer", shape: []int64{11, 6}, labelShape: []int64{8}, label: orIgnored(6), integers: true},
	"ranks":           {metric: "spearman", shape: []int64{1}, output: upTo(20), label: upTo(9)},
	"pairs":           {metric: "spearman", shape: []int64{8}, label: fraction},
	"pairs of tokens": {metric: "spearman", shape: []int64{5, 8}, label: fraction, mask: true},
	"centroids":       {metric: "nearest-centroid", shape: []int64{6}, label: upTo(3), integers: true},
	"directions":      {metric: "embedding-cosine", shape: []int64{4, 6}, mask: true},
	"boxes":           {metric: "map", shape: []int64{9, 6}, labelShape: []int64{4, 5}},
	"boxes of both":   {metric: "box-agreement", shape: []int64{9, 6}, labelShape: []int64{4, 5}},
	"tokens": {metric: "perplexity", shape: []int64{10, 13}, labelShape: []int64{10}, label: upTo(13),
		integers: true},
}

func upTo(n int) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return float64(r.IntN(n)) }
}

// orIgnored are classes, and sometimes a label that does not count.
func orIgnored(n int) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return float64(r.IntN(n+1) - 1) }
}

func fraction(r *rand.Rand) float64 { return r.Float64() }

// draw is an array of samples.
func draw(r *rand.Rand, samples int, shape []int64, of func(*rand.Rand) float64) []float64 {
	if of == nil {
		of = (*rand.Rand).NormFloat64
	}
	xs := make([]float64, int64(samples)*ir.Spec{DType: ir.Uint8, Shape: shape}.Elems())
	for i := range xs {
		xs[i] = of(r)
	}
	return xs
}

// boxes are labels, and detections near them, some of other classes, and rows that fill up.
func boxes(r *rand.Rand, samples int) (found, labels []float64) {
	for range samples {
		var wanted [][]float64
		for range 4 {
			x, y := 20*r.Float64(), 20*r.Float64()
			l := []float64{x, y, x + 1 + 20*r.Float64(), y + 1 + 20*r.Float64(), float64(r.IntN(4) - 1)}
			wanted, labels = append(wanted, l), append(labels, l...)
		}
		for range 9 {
			l := wanted[r.IntN(4)]
			near := func(x float64) float64 { return x + 1.5*r.NormFloat64() }
			x, y := near(l[0]), near(l[1])
			found = append(found, x, y, max(x, near(l[2])), max(y, near(l[3])), float64(r.IntN(20))/20, l[4])
		}
	}
	return found, labels
}

// nested are numbers as lists of the shape.
func nested(xs []float64, shape ...int64) any {
	if len(shape) == 0 {
		return xs[0]
	}
	list := make([]any, shape[0])
	for i := range list {
		n := len(xs) / len(list)
		list[i] = nested(xs[i*n:][:n], shape[1:]...)
	}
	return list
}

func (k task) draw(seed uint64) (want, got, labels, mask []float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	want = draw(r, k.samples, k.shape, k.output)
	got = draw(r, k.samples, k.shape, k.output)
	if k.output == nil {
		for i := range got {
			got[i] = want[i] + 0.3*got[i]
		}
	}
	labels = draw(r, k.samples, k.labelShape, k.label)
	mask = draw(r, k.samples, k.shape[:1], upTo(2))
	for i := range k.samples {
		mask[i*int(k.shape[0])] = 1 // of the first token
	}
	if k.metric == "map" || k.metric == "box-agreement" {
		want, labels = boxes(r, k.samples)
		for i, x := range want {
			got[i] = x
			if i%6 < 4 {
				got[i] += r.Float64() / 2
			}
		}
	}
	return want, got, labels, mask
}

func array(xs []float64, shape ...int64) *ir.Array { return ir.ArrayOf(xs, shape...) }

// run accumulates a task in runs of at most size samples.
func (k task) run(t *testing.T, size int, want, got, labels, mask []float64) Score {
	t.Helper()
	c, err := Parse(k.metric)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for first := 0; first < k.samples; first += size {
		n := min(size, k.samples-first)
		part := func(xs []float64, shape []int64) *ir.Array {
			each := len(xs) / k.samples
			return array(xs[first*each:][:n*each], append([]int64{int64(n)}, shape...)...)
		}
		b := &Batch{Outputs: []string{"y"}, First: first, N: n, Got: map[string]*ir.Array{"y": part(got, k.shape)},
			Inputs: map[string]*ir.Array{}}
		if want != nil {
			b.Want = map[string]*ir.Array{"y": part(want, k.shape)}
		}
		if k.mask {
			b.Inputs["attention_mask"] = part(mask, k.shape[:1])
		}
		b.Labels = part(labels, k.labelShape)
		if k.integers {
			ids := make([]int64, b.Labels.Elems())
			for i, x := range values(b.Labels) {
				ids[i] = int64(x)
			}
			b.Labels = ir.ArrayOf(ids, b.Labels.Shape...)
			each := len(ids) / n
			for i := range n {
				b.Targets = append(b.Targets, ids[i*each:][1:each])
			}
		}
		if err := s.Add(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	score, err := s.Score(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return score
}

// Metrics of both models are those of the reference implementations, in runs of any number of samples.
func TestMetricsAreThoseOfReferenceImplementations(t *testing.T) {
	w := conform.Start(t)
	covered := map[string]bool{}
	for name, k := range tasks {
		covered[k.metric] = true
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				k.samples = 40
				want, got, labels, mask := k.draw(seed)
				scores := k.run(t, 1, want, got, labels, mask)
				if other := k.run(t, 16, want, got, labels, mask); other.After != scores.After ||
					math.Abs(other.Error-scores.Error) > 1e-12 {
					t.Errorf("in runs of 16 samples: %+v, one by one: %+v", other, scores)
				}
				shape := append([]int64{int64(k.samples)}, k.shape...)
				c := conform.Case{Labels: nested(labels, append([]int64{int64(k.samples)}, k.labelShape...)...),
					Reference: nested(want, shape...)}
				if k.mask {
					c.Mask = nested(mask, shape[:2]...)
				}
				for side, outputs := range [][]float64{want, got} {
					c.Scores = nested(outputs, shape...)
					expected, err := w.Metric(k.metric, c)
					if err != nil {
						t.Fatal(err)
					}
					if value := [2]float64{scores.Before, scores.After}[side]; !(math.Abs(value-expected) <= 1e-9) {
						t.Errorf("seed %d: got %v, the reference implementation %v", seed, value, expected)
					}
				}
			}
		})
	}
	for _, m := range Table() {
		if !covered[m.Name] {
			t.Errorf("metric %s has no task", m.Name)
		}
	}
}

// Standard errors are about the deviation of the differences of independent draws.
func TestStandardErrorsAreDeviationsOfDraws(t *testing.T) {
	for name, k := range tasks {
		t.Run(name, func(t *testing.T) {
			k.samples = 64
			const draws = 60
			sum, squares, claimed := 0.0, 0.0, 0.0
			for seed := range uint64(draws) {
				want, got, labels, mask := k.draw(seed)
				s := k.run(t, 16, want, got, labels, mask)
				d := s.After - s.Before
				sum += d / draws
				squares += d * d / draws
				claimed += s.Error * s.Error / draws
			}
			deviation := math.Sqrt(squares - sum*sum)
			if ratio := math.Sqrt(claimed) / deviation; !(ratio > 0.7 && ratio < 1.5) {
				t.Errorf("standard errors are %.2f of the deviation %v", ratio, deviation)
			}
		})
	}
}
