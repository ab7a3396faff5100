package quantize

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// A bounded is a variant and its worst-case quantization error, in the words of docs/bounds.md.
type bounded struct {
	variant
	rows    int                               // block size: 0 for whole columns, -1 for the tensor
	most    func(g shared, v float64) float64 // maximum error of one weight
	squares func(g shared) float64            // or the maximum sum of squared errors
	text    string
}

// A held is a bounded of float32 weights, or of float16 weights and scales.
type held struct {
	bounded
	half bool
}

// slack is the additional error of float16 scales and weights.
func (b *held) slack(most float64, became float32) float64 {
	if !b.half {
		return 0
	}
	return most*0x1p-10 + math.Abs(float64(became))*0x1p-11 + 0x1p-24
}

// shared is the input of a bound: the weights that share a scale, the end of their range (with zero), and the maximum
// magnitude.
type shared struct {
	x            []float32
	lo, hi, peak float64
}

func even(steps float64) func(shared, float64) float64 {
	return func(g shared, _ float64) float64 { return g.peak / steps / 2 }
}

func across(levels float64) func(shared, float64) float64 {
	return func(g shared, _ float64) float64 { return (g.hi - g.lo) / levels / 2 }
}

// floating is half of the last of so many bits of fraction, and at least that of the smallest numbers, relative to the
// scaled peak.
func floating(fraction, smallest int, largest float64) func(shared, float64) float64 {
	relative, absolute := bound(fraction, smallest)
	return func(g shared, v float64) float64 {
		if largest > 0 {
			return max(relative*math.Abs(v), absolute*g.peak/largest)
		}
		return max(relative*math.Abs(v), absolute)
	}
}

// plain is the squared error of minmax scales, over the possible increase by the search, which keeps the size of
// weights.
func plain(top float64, symmetric bool) func(shared) float64 {
	return func(g shared) float64 {
		if g.peak == 0 {
			return 0
		}
		scale, low, high := (g.hi-g.lo)/top, 0., top
		zero := math.RoundToEven(-g.lo / scale)
		if symmetric {
			half := (top + 1) / 2
			scale, zero, low, high = g.peak/half, 0, -half, half-1
			if g.hi > -g.lo {
				low, high = -high, -low
			}
		}
		errors, values := 0., 0.
		for _, v := range g.x {
			q := min(max(math.RoundToEven(float64(v)/scale), low-zero), high-zero)
			errors += math.Pow(float64(v)-q*scale, 2)
			values += float64(v) * float64(v)
		}
		return errors / max(1e-3, 1-errors/values)
	}
}

const (
	halfColumn = "half a scale: maximum magnitude of the column / 254"
	halfRange  = "half a scale: range of the column, including 0, / 510"
	balanced   = "the distance to the nearest level of the block, plus half a step"
	noMore     = balanced + "; sum of squared errors of a block: E / (1 - E / Σw²), where E is the sum with minmax " +
		"scales (MSE-optimal scales preserve the norm of the block), plus half a squared step per weight"
)

func boundedVariants() []bounded {
	int4, int4even, int2 := plain(15, false), plain(15, true), plain(3, false)
	return []bounded{
		{variant{DynamicInt8{}.Method(), nil}, 0, even(127), nil, halfColumn},
		{variant{DynamicInt8{}.Method(), []string{"asymmetric"}}, 0, across(255), nil, halfRange},
		{variant{DynamicInt8{}.Method(), []string{"reduce-range"}}, 0, even(64), nil,
			"half a scale: maximum magnitude of the column / 128"},
		{variant{DynamicInt8{}.Method(), []string{"per-tensor"}}, -1, even(127), nil,
			"half a scale: maximum magnitude of the tensor / 254"},
		{variant{StaticInt8{}.Method(), []string{"activation-sqnr=0"}}, 0, even(127), nil, halfColumn},
		{variant{WeightInt8{}.Method(), nil}, 0, even(127), nil, halfColumn},
		{variant{WeightInt8{}.Method(), []string{"asymmetric"}}, 0, across(255), nil, halfRange},
		{variant{WeightInt8{}.Method(), []string{"block=32", "search=minmax", "asymmetric"}}, 32, across(255), nil,
			"half a scale: range of the block, including 0, / 510"},
		{variant{WeightInt4{}.Method(), nil}, 32, nil, int4, noMore},
		{variant{WeightInt4{}.Method(), []string{"block=16", "symmetric"}}, 16, nil, int4even, noMore},
		{variant{WeightInt4{}.Method(), []string{"per-channel"}}, 0, nil, int4, noMore},
		{variant{WeightInt4{}.Method(), []string{"search=minmax"}}, 32, across(15), nil,
			"half a scale: range of the block, including 0, / 30"},
		{variant{WeightInt4{}.Method(), []string{"search=minmax", "symmetric"}}, 32, even(4), nil,
			"maximum magnitude of the block / 8 (one scale) at the end of the range that has one level less, / 16 elsewhere"},
		{variant{WeightInt4{}.Method(), []string{"algo=hqq"}}, 32, nil, nil, balanced},
		{variant{WeightInt2{}.Method(), nil}, 32, nil, int2, noMore},
		{variant{WeightInt2{}.Method(), []string{"search=minmax"}}, 32, across(3), nil,
			"half a scale: range of the block, including 0, / 6"},
		{variant{Palette{}.Method(), []string{"block=0"}}, -1, even(0.25), nil,
			"distance to the nearest entry of the codebook, at most 2 × the maximum magnitude of the tensor"},
		{variant{Palette{}.Method(), []string{"entries=256", "block=0"}}, -1, even(10), nil,
			"distance to the nearest entry of the codebook, below 1/20 of the maximum magnitude of the tensor"},
		{variant{Float16{}.Method(), nil}, -1, floating(10, -24, 0), nil, "2⁻¹¹ of a weight; 2⁻²⁵ below 2⁻¹⁴"},
		{variant{BFloat16{}.Method(), nil}, -1, floating(7, -133, 0), nil, "2⁻⁸ of a weight"},
		{variant{Float8{}.Method(), nil}, 0, floating(3, -9, 448), nil,
			"2⁻⁴ of a weight; near 0, 2⁻¹⁰ of the maximum magnitude of the column / 448"},
		{variant{Float8{}.Method(), []string{"type=e5m2"}}, 0, floating(2, -16, 57344), nil,
			"2⁻³ of a weight; near 0, 2⁻¹⁷ of the maximum magnitude of the column / 57344"},
		{variant{Float4{}.Method(), []string{"block=16"}}, 16, func(g shared, v float64) float64 {
			return max(math.Abs(v)/4, g.peak/7)
		}, nil, "a quarter of a weight, or 1/7 of the maximum magnitude of its block"},
	}
}

// spreads are distributions of weights.
var spreads = []struct {
	name string
	next func(r *rand.Rand, i int) float64
}{
	{"normal", func(r *rand.Rand, _ int) float64 { return r.NormFloat64() }},
	{"uniform", func(r *rand.Rand, _ int) float64 { return r.Float64() }},
	{"wide", func(r *rand.Rand, _ int) float64 { return r.NormFloat64() * math.Exp(3*r.NormFloat64()) }},
	{"zeros", func(*rand.Rand, int) float64 { return 0 }},
	{"sparse", func(r *rand.Rand, _ int) float64 { return r.NormFloat64() * math.Floor(r.Float64()*1.2) }},
	{"constant", func(*rand.Rand, int) float64 { return 0.3 }},
	{"signs", func(r *rand.Rand, _ int) float64 { return float64(r.IntN(2)*2 - 1) }},
	{"outlier", func(r *rand.Rand, i int) float64 {
		return r.NormFloat64() * (1 + 1000*math.Floor(math.Max(0, 1-math.Abs(float64(i-777)))))
	}},
	{"moved", func(r *rand.Rand, _ int) float64 { return 5 + 0.1*r.NormFloat64() }},
	{"ties", func(r *rand.Rand, _ int) float64 { return float64(r.IntN(255)-127) / 2 }},
	{"tiny", func(r *rand.Rand, _ int) float64 { return 1e-30 * r.NormFloat64() }},
	{"huge", func(r *rand.Rand, _ int) float64 { return 1e34 * r.NormFloat64() }},
	{"subnormal", func(r *rand.Rand, _ int) float64 { return 1e-41 * r.NormFloat64() }},
	{"nan", func(r *rand.Rand, i int) float64 {
		if i%1000 == 999 {
			return math.NaN()
		}
		return r.NormFloat64()
	}},
}

// fitting are factors for spreads that float16 cannot represent.
var fitting = map[string]float64{"tiny": 1e24, "huge": 1e-30, "subnormal": 1e34}

// halved is v as a float16 number, for which a spread may be scaled.
func halved(spread string, v float64) float32 {
	if f := fitting[spread]; f != 0 {
		v *= f
	}
	return widened(binary.LittleEndian.AppendUint16(nil,
		quanttest.Narrow(ir.Float16, float32(min(max(v, -65504), 65504)))))[0]
}

// matrices is a model of a product for each spread in some shapes.
func matrices(t *testing.T, elem ir.DType) (path string, weights map[string][]float32, shapes map[string][]int64) {
	s := newBuilder(t, 25) // which supports all data types
	s.elem = elem
	weights, shapes = map[string][]float32{}, map[string][]int64{}
	for _, shape := range [][]int64{{64, 48}, {33, 70}, {300, 9}, {129, 16}, {16, 260}} {
		in := s.input(fmt.Sprint("x", shape[0]), 2, shape[0])
		for _, p := range spreads {
			x := make([]float32, shape[0]*shape[1])
			for i := range x {
				x[i] = float32(p.next(s.random, i))
				if elem == ir.Float16 {
					x[i] = halved(p.name, float64(x[i]))
				}
			}
			name := fmt.Sprint(p.name, shape)
			weights[name], shapes[name] = x, shape
			s.output("y"+name, s.node("MatMul", []*ir.Value{in, s.AddConst(name, quanttest.TensorOf(elem, shape, x))}), 2,
				shape[1])
		}
	}
	return s.save(), weights, shapes
}

// written are the weights in the file that v makes of the model, by their names, and those in blocks that divide their
// rows.
func written(t *testing.T, v variant, path string) (got map[string][]float32, folded map[string]bool) {
	t.Helper()
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	s := &pass.Step{Model: opened(t, path).Model, Eval: eval,
		Env: pass.Environment{Workers: 2, Precheck: true, Target: v.target(t)}}
	res, err := pass.Run(t.Context(), s.Model, s.Eval, s.Env, []pass.Options{v.step(t)})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.onnx")
	if _, err := onnx.Save(t.Context(), s.Model, out,
		onnx.SaveOptions{Workers: 2, Memory: 64 << 20, Eval: eval}); err != nil {
		t.Fatal(err)
	}
	stored := map[string]*ir.Tensor{}
	for _, v := range opened(t, out).Model.Graph.Consts() {
		stored[v.Name] = v.Const
	}
	got, folded = map[string][]float32{}, map[string]bool{}
	for _, r := range res.Rows {
		if r.Status != pass.Changed {
			continue
		}
		var parts []*ir.Tensor
		for _, p := range r.After {
			parts = append(parts, stored[p.Value.Name])
		}
		back := r.Restore(parts)
		b, err := eval.ReadAll(t.Context(), back)
		if err != nil {
			t.Fatal(err)
		}
		if got[r.Tensor], folded[r.Tensor] = floats32(b), r.Form.Name == pass.CastMul.Name; back.DType == ir.Float16 {
			got[r.Tensor] = widened(b)
		}
	}
	return got, folded
}

// groups are the indices of the weights of a matrix that share a scale.
func (b *bounded) groups(k, n int) (all [][]int) {
	rows := b.rows
	if rows <= 0 {
		rows = k
	}
	for first := 0; first < k; first += rows {
		for j := range n {
			if j == 0 || b.rows >= 0 {
				all = append(all, nil)
			}
			last := &all[len(all)-1]
			for i := first; i < min(k, first+rows); i++ {
				*last = append(*last, i*n+j)
			}
		}
	}
	return all
}

// dividing are those of a matrix of k rows with blocks that divide them.
func (b *held) dividing(k int) *held {
	c := *b
	c.rows = int(weightonly.Divisor(int64(k), int64(b.rows)))
	return &c
}

// hold checks the bound for one matrix.
func (b *held) hold(t *testing.T, name string, k, n int, x, got []float32) {
	t.Helper()
	for _, group := range b.groups(k, n) {
		g, back := shared{}, []float32{}
		for _, i := range group {
			v := float64(x[i])
			g.x, back = append(g.x, x[i]), append(back, got[i])
			g.lo, g.hi, g.peak = min(g.lo, v), max(g.hi, v), max(g.peak, math.Abs(v))
		}
		sum := 0.
		for i, v := range g.x {
			d := math.Abs(float64(v) - float64(back[i]))
			sum += d * d
			if b.most == nil {
				continue
			}
			most := b.most(g, float64(v))
			if most = most*1.002 + g.peak*2e-6 + b.slack(most, back[i]); !(d <= most) {
				t.Fatalf("%s: %s: %g became %g, an error of %g; the bound is %g", b.variant, name, v, back[i], d, most)
			}
		}
		step := 0.
		if strings.HasPrefix(b.text, balanced) {
			step = leastStep(back)
		}
		slack := b.slack(g.peak, float32(g.peak))
		nearestOf(t, b.String()+": "+name, g.x, back, step/2+slack)
		if b.squares == nil || b.half && step == 0 { // a block of one value does not determine the distance of others
			continue
		}
		n := float64(len(g.x))
		most := b.squares(g)*1.002 + n*(step*step/2+math.Pow(g.peak*2e-6, 2))
		if most = math.Pow(math.Sqrt(most)+math.Sqrt(n)*slack, 2); !(sum <= most) {
			t.Fatalf("%s: %s: the squares of errors are %g, the bound is %g", b.variant, name, sum, most)
		}
	}
}

// numbersOf are the representable values in use.
func numbersOf(back []float32) []float32 { return slices.Compact(slices.Sorted(slices.Values(back))) }

// leastStep is the least distance of two representable values in use, or 0.
func leastStep(back []float32) (step float64) {
	numbers := numbersOf(back)
	for i := 1; i < len(numbers); i++ {
		if d := float64(numbers[i]) - float64(numbers[i-1]); step == 0 || d < step {
			step = d
		}
	}
	return step
}

// nearestOf checks that each weight is rounded to the nearest representable value of its block, except for some slack.
func nearestOf(t *testing.T, name string, x, back []float32, slack float64) {
	t.Helper()
	numbers := numbersOf(back)
	for i, v := range x {
		at, _ := slices.BinarySearch(numbers, v)
		for _, other := range numbers[max(0, at-1):min(len(numbers), at+1)] {
			if is, could := math.Abs(float64(v-back[i])),
				math.Abs(float64(v-other)); is > could*(1+1e-5)+slack*1.001+math.Abs(float64(v))*1e-6 {
				t.Fatalf("%s: %g became %g, though there is %g", name, v, back[i], other)
			}
		}
	}
}

// The weights in the files that methods write are within the bounds of docs/bounds.md, for all distributions.
func TestWeightsAreWithinTheirBounds(t *testing.T) {
	for _, elem := range []ir.DType{ir.Float, ir.Float16} {
		path, weights, shapes := matrices(t, elem)
		for _, b := range boundedVariants() {
			b := held{b, elem == ir.Float16}
			if b.half && !b.inBlocks() {
				continue
			}
			t.Run(fmt.Sprint(b.String(), " ", elem), func(t *testing.T) {
				got, folded := written(t, b.variant, path)
				for name, w := range got {
					if k, n := int(shapes[name][0]), int(shapes[name][1]); folded[name] && b.rows > 0 {
						b.dividing(k).hold(t, name, k, n, weights[name], w)
					} else {
						b.hold(t, name, k, n, weights[name], w)
					}
				}
				if len(got) < len(weights)/2 {
					t.Errorf("%d of %d matrices were changed", len(got), len(weights))
				}
				for name := range got {
					if strings.HasPrefix(name, "nan") {
						t.Errorf("%s was changed", name)
					}
				}
			})
		}
	}
}

// inBlocks reports whether the scales are those of blocks.
func (b *bounded) inBlocks() bool {
	return b.method == WeightInt4{}.Method() || b.method == WeightInt2{}.Method() ||
		b.method == WeightInt8{}.Method() && b.rows > 0
}

// Every method that quantizes weights has a worst-case error.
func TestEveryMethodHasABound(t *testing.T) {
	for _, m := range Methods() {
		if m.Stage == pass.Quantize &&
			!slices.ContainsFunc(boundedVariants(), func(b bounded) bool { return b.method == m }) {
			t.Errorf("boundedVariants has no row for %s: add one with the maximum error of a weight, then write "+
				"docs/bounds.md with -update", m.Name)
		}
	}
}

// The page is written from the table.
func TestBoundsAreDocumented(t *testing.T) {
	var page strings.Builder
	page.WriteString(
		"# Worst-case quantization error\n\nThe maximum error of a weight by method and options, tested on written files. " +
			"This page is written by\n`go test ./quantize -run Bounds -update` from that test's table.\n\n| method | options " +
			"| maximum error of a weight |\n|---|---|---|\n")
	for _, b := range boundedVariants() {
		options := ""
		for _, o := range b.options {
			options += "`--" + strings.Replace(o, "=", " ", 1) + "` "
		}
		fmt.Fprintf(&page, "| `%s` | %s| %s |\n", b.method.Name, options, b.text)
	}
	page.WriteString("\nEach weight is rounded to the nearest level of its scale. With error feedback, which keeps the " +
		"sum of the errors of a channel small, some weights are rounded to the level\n" +
		"on the other side, as the table states. Scales of blockwise float16 weights are float16, and so are the " +
		"dequantized values, which adds at most 2⁻¹⁰ of a bound, 2⁻¹¹ of a weight and 2⁻²⁴. There is no bound\n" +
		"per weight with `--algo gptq` and `--algo awq`, which minimize the error of outputs: the error of one weight is " +
		"compensated by others. Weights that a method does not support, such as NaN,\ninfinities and magnitudes without a " +
		"scale of normal float32 size, are skipped, with the reason in the ledger.\n" +
		"\n## Evaluated in every run\n\nEach run reads the parts of the weights back from the files that it wrote, " +
		"restores each weight as a reader does, and compares every element with the weight that was\n" +
		"encoded. A weight beyond these bounds is an internal error that names it, and nothing is published. They hold for " +
		"every weight that a method accepts, because they are derived from the rounding alone:\n\n" +
		"- **Integers and small floats.** The weight restored with all stored values at the lowest, and at the highest " +
		"one, shows the range of values at each element for the scale and zero point that a reader uses.\n" +
		"  The restored element is at most half a step from the element clamped to that range, three quarters with error " +
		"feedback (which shifts values by at most a quarter of a step before it rounds them), or half\n" +
		"  the spacing of the float type. This holds for any scale, however it was found, so clipping needs no term of its " +
		"own.\n" +
		"- **Scales.** The range of a scale reaches the largest magnitude of its elements: exactly, within a step, where " +
		"scales cover their elements; 1/64 of it where they are searched, as each of at most three refits of\n" +
		"  a scale s to rounded values q at least halves it (|w/s - q| ≤ 1/2 gives w·q ≥ s·q²/2), clipping factors are at " +
		"least 0.56, and one end of the range is at least half of it. It is no wider than that magnitude,\n" +
		"  or 4n times it for n elements of a scale that keeps their norm (s = Σw²/Σq·w, and q of the largest element is " +
		"at least a third of that at the end of the range); `hqq` has no limit. Only dead channels,\n" +
		"  below 2⁻²⁴ of the largest magnitude of the weight, may have the scale of zeros.\n" +
		"- **`--algo gptq`**: the restored weight equals the solution, which the layers after it were solved with.\n" +
		"- **float16, bfloat16**: half the spacing of numbers at each element, and half the smallest subnormal number; " +
		"elements are clamped where the method clamps.\n" +
		"- **Palettes**: each element is between the middles of its entry and the neighbouring ones, times its scale. To " +
		"that is added what the assignment rounds: 1/16 of the scale with error feedback, half a cell of the table\n" +
		"  for 64 and 256 entries with scales (2⁻¹²), 16-bit integers for up to 16 (2⁻¹⁴). Vectors are compared with four " +
		"other entries, none of which is nearer.\n" +
		"- **int32 biases**: half a scale from the bias, after its correction. **Pruned weights**: each element is what it " +
		"was, or 0; with `sparsegpt`, `--reconstruct` and corrected float biases, what the method solved.\n" +
		"- **Sparse forms** are equal. **`lowrank`**: the norm of the error is that of the singular values left out, as " +
		"factors and product are rounded (2⁻¹⁴ of the norm of the weight; 2⁻⁷ in float16).\n" +
		"- Rounding of restored elements and of the arithmetic that quantizes them adds 2⁻¹⁸ of the range, in float16 " +
		"1.5·2⁻¹⁰ and 2⁻²⁴.\n")
	file := filepath.Join("..", "docs", "bounds.md")
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if string(read(t, file)) != page.String() {
		t.Errorf("%s is outdated: run this test with -update", file)
	}
}
