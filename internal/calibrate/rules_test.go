package calibrate

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// observed is an observer with the given rule after the parts were added one by one.
func observed(t *testing.T, rule string, parts ...[]float32) *Observer {
	t.Helper()
	o := &Observer{Rule: rule, Percentile: 99}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if err := o.Visit("x", ir.ArrayOf(p, int64(len(p)))); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func numbers(n int, make func(*rand.Rand) float32) []float32 {
	rng := rand.New(rand.NewPCG(3, 4))
	var x []float32
	for range n {
		x = append(x, make(rng))
	}
	return x
}

func gauss(rng *rand.Rand) float32 { return float32(rng.NormFloat64()) }

// outliers are normally distributed with rare large values.
func outliers(rng *rand.Rand) float32 {
	if rng.IntN(5000) == 0 {
		return 60
	}
	return float32(rng.NormFloat64())
}

// A histogram counts each value in its bin, independent of the order of values and of their division into parts.
func TestHistogramsDependOnValuesOnly(t *testing.T) {
	x := numbers(40000, func(rng *rand.Rand) float32 {
		return float32(rng.NormFloat64() * math.Exp(4*rng.NormFloat64()))
	})
	x[5], x[6] = 0, float32(math.Copysign(0, -1))
	all := &histogram{}
	all.add(x)
	parts := &histogram{}
	slices.SortFunc(x, func(a, b float32) int { return int(math.Copysign(1, math.Abs(float64(a))-math.Abs(float64(b)))) })
	for len(x) > 0 {
		n := min(len(x), 777)
		parts.add(x[:n])
		for _, v := range x[:n] {
			i := half + int(math.Trunc(float64(v)/all.width))
			if math.Signbit(float64(v)) {
				i--
			}
			all.counts[i]--
		}
		x = x[n:]
	}
	if parts.width != all.width {
		t.Fatalf("width %g in parts, %g as a whole", parts.width, all.width)
	}
	for i, c := range all.counts {
		if c != 0 {
			t.Fatalf("bin %d counts %d too many", i, c)
		}
	}
	again := &histogram{}
	again.add(numbers(40000, func(rng *rand.Rand) float32 {
		return float32(rng.NormFloat64() * math.Exp(4*rng.NormFloat64()))
	}))
	if again.total() != parts.total() {
		t.Errorf("%d numbers, want %d", parts.total(), again.total())
	}
}

// cost is the mean squared error of quantization to 255 steps over r.
func cost(x []float32, r Range) float64 {
	step := (r.Max - r.Min) / 255
	sum := 0.0
	for _, v := range x {
		q := min(max(math.RoundToEven(float64(v)/step)*step, r.Min), r.Max)
		sum += (q - float64(v)) * (q - float64(v))
	}
	return sum / float64(len(x))
}

// The MSE-optimal range has no larger error than the other rules' ranges, measured value by value, nor than neighboring
// ranges.
func TestLeastErrorIsMinimum(t *testing.T) {
	for name, x := range map[string][]float32{
		"normal": numbers(50000, gauss), "outliers": numbers(50000, outliers),
		"one side": numbers(50000, func(rng *rand.Rand) float32 { return max(0, gauss(rng)) }),
		"skewed":   numbers(50000, func(rng *rand.Rand) float32 { return float32(rng.ExpFloat64()) - 0.3 }),
	} {
		best, why := observed(t, "mse", x).Range("x", 255)
		if why != "" {
			t.Fatal(why)
		}
		least := cost(x, best)
		for _, rule := range []string{"minmax", "percentile", "entropy"} {
			r, _ := observed(t, rule, x).Range("x", 255)
			if c := cost(x, r); c < 0.95*least {
				t.Errorf("%s: error %g, of %s %g", name, least, rule, c)
			}
		}
		for _, f := range []float64{0.8, 0.9, 1.1, 1.25} {
			if c := cost(x, Range{best.Min * f, best.Max * f}); c < 0.95*least {
				t.Errorf("%s: error %g, %g times as wide %g", name, least, f, c)
			}
		}
	}
}

// Each rule's range equals its definition.
func TestRangesEqualTheirDefinition(t *testing.T) {
	x := numbers(100000, gauss)
	sorted := slices.Sorted(slices.Values(x))
	for _, c := range []struct {
		rule string
		want Range
		off  float64
	}{
		{"minmax", Range{float64(sorted[0]), float64(sorted[len(x)-1])}, 0},
		{"percentile", Range{float64(sorted[500]), float64(sorted[len(x)-500])}, 0.01},
		{"moving-average", Range{float64(sorted[0]), float64(sorted[len(x)-1])}, 0},
	} {
		r, _ := observed(t, c.rule, x).Range("x", 255)
		if math.Abs(r.Min-c.want.Min) > c.off || math.Abs(r.Max-c.want.Max) > c.off {
			t.Errorf("%s: %v, want %v", c.rule, r, c.want)
		}
	}
	r, _ := observed(t, "moving-average", []float32{-1, 2}, []float32{-3, 1}).Range("x", 255)
	if want := (Range{-1 - 0.02, 2 - 0.01}); math.Abs(r.Min-want.Min) > 1e-12 || math.Abs(r.Max-want.Max) > 1e-12 {
		t.Errorf("moving average %v, want %v", r, want)
	}
	wide, _ := observed(t, "entropy", numbers(50000, outliers)).Range("x", 255)
	if wide.Max > 20 || wide.Max < 2 {
		t.Errorf("entropy: the range of normal numbers with rare outliers ends at %g", wide.Max)
	}
	half, _ := observed(t, "entropy", numbers(50000, func(rng *rand.Rand) float32 {
		return max(0, gauss(rng))
	})).Range("x", 255)
	if half.Max < 2.5 {
		t.Errorf("entropy: the range of the positive half of normal numbers ends at %g", half.Max)
	}
}

// The percentile's range includes the whole bin of the last value at either end that is not cut off.
func TestPercentileIncludesWholeBins(t *testing.T) {
	x := make([]float32, 0, 1000) // ten bins of 1 on either side: 0.5, 1.5, ...
	for i := range 1000 {
		v := float32(i/2%10)*204 + 102
		if i%2 == 1 {
			v = -v
		}
		x = append(x, v)
	}
	h := &histogram{}
	h.add(x)
	for _, c := range []struct {
		p    float64
		bins float64 // of 50 values on either side
	}{{1, 10}, {0.95, 10}, {0.89, 9}, {0.79, 8}} {
		last := float64(h.edge(half+int((c.bins-1)*204+102)*int(1/h.width))) + h.width
		if got, want := h.percentile(c.p), min(last, float64(h.top)); got.Max != want || got.Min != -want {
			t.Errorf("%v: %v, want ±%v", c.p, got, want)
		}
	}
}

// A value without range has a reason; zeros have a range.
func TestValuesWithoutARange(t *testing.T) {
	for _, rule := range ruleNames() {
		if _, why := observed(t, rule).Range("x", 255); why == "" {
			t.Errorf("%s: a range of nothing", rule)
		}
		if _, why := observed(t, rule, []float32{1, float32(math.Inf(1))}).Range("x", 255); why == "" {
			t.Errorf("%s: a range with infinities", rule)
		}
		if r, why := observed(t, rule, []float32{0, 0}).Range("x", 255); why != "" || r != (Range{}) {
			t.Errorf("%s: zeros have the range %v: %s", rule, r, why)
		}
		if r, why := observed(t, rule, []float32{3, 4}).Range("x", 255); why != "" || r.Min != 0 || r.Max > 4 {
			t.Errorf("%s: zero is outside of %v: %s", rule, r, why)
		}
	}
}

// Means and variances are per channel.
func TestChannelMeansAndVariances(t *testing.T) {
	var c Channels
	c.Visit("x", ir.ArrayOf([]float32{1, 3, 10, 10, 5, 7, 20, 20}, 2, 2, 2))
	c.Visit("x", ir.ArrayOf([]float32{4, 4, 15, 15}, 1, 2, 2))
	if got := c.Means("x"); !slices.Equal(got, []float64{4, 15}) {
		t.Errorf("means %v", got)
	}
	if got, want := c.Variance("x"), (20.0/6+100.0/6)/2; math.Abs(got-want) > 1e-9 {
		t.Errorf("variance %g, want %g", got, want)
	}
}

// Saved files load unchanged, and equal values give equal bytes.
func TestRangeFilesRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	values := map[string]Summary{"b": {Range: Range{-1.5, 2}, Variance: 3, Means: []float64{1, 2}},
		"a\"": {Range: Range{0, 1e-9}}}
	if err := Save(&pass.Step{}, path, 30, values); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil || f.SQNR != 30 || len(f.Values) != 2 || f.Values["b"].Range != values["b"].Range ||
		!slices.Equal(f.Values["b"].Means, values["b"].Means) {
		t.Errorf("%+v: %v", f, err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("a missing file is read")
	}
}
