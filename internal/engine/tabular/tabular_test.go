package tabular

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// run runs one node of that version of the domain, with two outputs.
func run(typ string, version int64, attrs []*ir.Attr, arrays map[string]*ir.Array, in ...*ir.Array) ([]*ir.Array,
	error) {
	return optest.Run(Ops(), optest.Case{
		Domain: "ai.onnx.ml", Type: typ, Version: version, In: in, Attrs: attrs, Arrays: arrays, Outputs: 2, Workers: 2,
	})
}

func text(name, s string) *ir.Attr              { return &ir.Attr{Name: name, S: s} }
func texts(name string, s ...string) *ir.Attr   { return &ir.Attr{Name: name, Strings: s} }
func number1(name string, i int64) *ir.Attr     { return &ir.Attr{Name: name, I: i} }
func ints(name string, i ...int64) *ir.Attr     { return &ir.Attr{Name: name, Ints: i} }
func real1(name string, f float32) *ir.Attr     { return &ir.Attr{Name: name, F: f} }
func floats(name string, f ...float32) *ir.Attr { return &ir.Attr{Name: name, Floats: f} }

func row(xs ...float32) *ir.Array { return ir.ArrayOf(xs, 1, int64(len(xs))) }

// near compares with float32's precision.
func near(got, want []float32) bool {
	return slices.EqualFunc(got, want, func(g, w float32) bool {
		return math.Abs(float64(g-w)) <= 2e-6*max(1,
			math.Abs(float64(w)))
	})
}

// stumps are two trees of one comparison each: feature 0 with 0, feature 1 with 1.
func stumps(more ...*ir.Attr) []*ir.Attr {
	return append([]*ir.Attr{
		ints("nodes_treeids", 0, 0, 0, 1, 1, 1), ints("nodes_nodeids", 0, 1, 2, 0, 1, 2),
		ints("nodes_featureids", 0, 0, 0, 1, 0, 0),
		floats("nodes_values", 0, 0, 0, 1, 0, 0), texts("nodes_modes", "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LT",
			"LEAF", "LEAF"),
		ints("nodes_truenodeids", 1, 0, 0, 1, 0, 0), ints("nodes_falsenodeids", 2, 0, 0, 2, 0, 0),
		ints("nodes_missing_value_tracks_true", 0, 0, 0, 1, 0, 0),
	}, more...)
}

// votes are of the leaves true and false of each stump, for those targets.
func votes(prefix, ids string, targets []int64, weights ...float32) []*ir.Attr {
	return []*ir.Attr{ints(prefix+"_treeids", 0, 0, 1, 1), ints(prefix+"_nodeids", 1, 2, 1, 2), ints(ids, targets...),
		floats(prefix+"_weights", weights...)}
}

func regressor(more ...*ir.Attr) []*ir.Attr {
	return append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...),
		append(more, number1("n_targets", 1))...)
}

func TestTreesAreWalked(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct{ a, b, want float32 }{
		{0, 0.5, 11}, {0, 1, 21}, {0.5, 0.5, 12}, {nan, 2, 22}, {-1, nan, 11},
	} {
		out, err := run("TreeEnsembleRegressor", 3, regressor(), nil, row(c.a, c.b))
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[float32](out[0])[0]; got != c.want {
			t.Errorf("%v, %v: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestVotesAreAggregated(t *testing.T) {
	for name, want := range map[string]float32{"SUM": 111, "AVERAGE": 105.5, "MIN": 101, "MAX": 110} {
		out, err := run("TreeEnsembleRegressor", 3,
			regressor(text("aggregate_function", name), floats("base_values", 100)), nil, row(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[float32](out[0])[0]; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// The expected values are ONNX Runtime 1.31.1's for the same model.
func TestTwoClassesOfWhichOneHasVotes(t *testing.T) {
	for _, c := range []struct {
		weights []float32
		after   string
		label   int64
		want    []float32
	}{
		{[]float32{0.2, 0.3, 0.15, 0.25}, "NONE", 7, []float32{0.65, 0.35}},
		{[]float32{0.4, 0.3, 0.15, 0.25}, "NONE", 8, []float32{0.45, 0.55}},
		{[]float32{0.2, 0.3, 0.15, 0.25}, "LOGISTIC", 7, []float32{0.41338, 0.58662}},
		{[]float32{-0.2, 0.3, 0.15, -0.25}, "NONE", 7, []float32{0.05, -0.05}},
		{[]float32{0.2, 0.3, 0.25, -0.25}, "NONE", 8, []float32{-0.45, 0.45}},
	} {
		attrs := append(votes("class", "class_ids", []int64{0, 0, 0, 0}, c.weights...),
			text("post_transform", c.after), ints("classlabels_int64s", 7, 8))
		out, err := run("TreeEnsembleClassifier", 1, stumps(attrs...), nil, row(-1, -1))
		if err != nil {
			t.Fatal(err)
		}
		got := ir.View[float32](out[1])
		for i := range got {
			if math.Abs(float64(got[i]-c.want[i])) > 1e-5 {
				t.Errorf("%v %s: got %v, want %v", c.weights, c.after, got, c.want)
			}
		}
		if label := ir.View[int64](out[0])[0]; label != c.label {
			t.Errorf("%v %s: label %d, want %d", c.weights, c.after, label, c.label)
		}
	}
}

func TestTopClassOfThree(t *testing.T) {
	attrs := append(votes("class", "class_ids", []int64{0, 1, 2, 0}, 1, 2, 3, 4),
		texts("classlabels_strings", "a", "b", "c"))
	for x, want := range map[float32]string{0: "c", 1: "a"} {
		out, err := run("TreeEnsembleClassifier", 1, stumps(attrs...), nil, row(0, x))
		if err != nil {
			t.Fatal(err)
		}
		if got := out[0].Text[0]; got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
}

func TestMalformedTreesAreErrors(t *testing.T) {
	good := votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)
	for name, change := range map[string]*ir.Attr{
		"a cycle":                 ints("nodes_falsenodeids", 0, 0, 0, 2, 0, 0),
		"no such node":            ints("nodes_truenodeids", 9, 0, 0, 1, 0, 0),
		"no such mode":            texts("nodes_modes", "BRANCH", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"),
		"short list":              ints("nodes_featureids", 0),
		"feature -1":              ints("nodes_featureids", -1, 0, 0, 1, 0, 0),
		"feature 9":               ints("nodes_featureids", 9, 0, 0, 1, 0, 0),
		"vote of an unknown node": ints("target_nodeids", 7, 2, 1, 2),
		"no such target":          ints("target_ids", 1, 0, 0, 0),
		"no targets":              number1("n_targets", 0),
		"base of another":         floats("base_values", 1, 2),
	} {
		attrs := append(stumps(good...), number1("n_targets", 1), change)
		if out, err := run("TreeEnsembleRegressor", 3, attrs, nil, row(0, 0)); err == nil {
			t.Errorf("%s gives %v", name, out[0])
		}
	}
}

// For two classes the coupled probabilities are those of their only pair.
func TestCouplingOfOnePair(t *testing.T) {
	got := couple([][]float64{{0, 0.3}, {0.7, 0}})
	if math.Abs(got[0]-0.3) > 0.005/2 || math.Abs(got[0]+got[1]-1) > 1e-12 {
		t.Errorf("got %v, want 0.3 and 0.7", got)
	}
}

func TestKernels(t *testing.T) {
	for kernel, want := range map[string]float64{
		"LINEAR": 1*3 + 2*4, "POLY": math.Pow(0.5*11+1, 2), "RBF": math.Exp(-0.5 * (4 + 4)),
		"SIGMOID": math.Tanh(0.5*11 + 1),
	} {
		out, err := run("SVMRegressor", 1, []*ir.Attr{text("kernel_type", kernel), floats("kernel_params", 0.5, 1, 2),
			floats("support_vectors", 3, 4),
			floats("coefficients", 2), floats("rho", 0.25), number1("n_supports", 1)}, nil, row(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[float32](out[0]); !near(got, []float32{float32(2*want + 0.25)}) {
			t.Errorf("%s: got %v, want %v", kernel, got, 2*want+0.25)
		}
	}
}

// Normalizer divides by the maximum, which may be negative, and does not change rows whose divisor is zero.
func TestNorms(t *testing.T) {
	for norm, want := range map[string][]float32{
		"MAX": {0.75, 1, 0, 0, 2, 1}, "L1": {3. / 7, 4. / 7, 0, 0, -2. / 3, -1. / 3},
		"L2": {0.6, 0.8, 0, 0, -2 / float32(math.Sqrt(5)), -1 / float32(math.Sqrt(5))},
	} {
		out, err := run("Normalizer", 1, []*ir.Attr{text("norm", norm)}, nil,
			ir.ArrayOf([]float32{3, 4, 0, 0, -2, -1}, 3, 2))
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[float32](out[0]); !near(got, want) {
			t.Errorf("%s: got %v, want %v", norm, got, want)
		}
	}
}

func TestImputedIntegersAreExact(t *testing.T) {
	const large = 1<<53 + 1
	out, err := run("Imputer", 1, []*ir.Attr{number1("replaced_value_int64", 5),
		ints("imputed_value_int64s", large+2, 7)}, nil, ir.ArrayOf([]int64{5, 5, large, 1}, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[int64](out[0]); !slices.Equal(got, []int64{large + 2, 7, large, 1}) {
		t.Errorf("got %v", got)
	}
}

// A value beyond int32 equals no int32, and not that of its low bits.
func TestReplacedValueBeyondInt32(t *testing.T) {
	out, err := run("Imputer", 1, []*ir.Attr{number1("replaced_value_int64", 1<<32+5), ints("imputed_value_int64s", 9)},
		nil, ir.ArrayOf([]int32{5, 7}, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[int32](out[0]); !slices.Equal(got, []int32{5, 7}) {
		t.Errorf("got %v", got)
	}
}

// An imputed value beyond int32 is refused, and not cut to its low bits.
func TestImputedValueBeyondInt32(t *testing.T) {
	for _, v := range []int64{1 << 31, -1<<31 - 1, 1<<32 + 5} {
		out, err := run("Imputer", 1, []*ir.Attr{ints("imputed_value_int64s", 9, v)}, nil, ir.ArrayOf([]int32{0, 0}, 1, 2))
		if err == nil {
			t.Errorf("%d: got %v", v, out[0])
		}
	}
	out, err := run("Imputer", 1, []*ir.Attr{ints("imputed_value_int64s", -1<<31, 1<<31-1)}, nil,
		ir.ArrayOf([]int32{0, 0}, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[int32](out[0]); !slices.Equal(got, []int32{-1 << 31, 1<<31 - 1}) {
		t.Errorf("got %v", got)
	}
}

func TestMissingValuesAreImputed(t *testing.T) {
	nan := float32(math.NaN())
	out, err := run("Imputer", 1, []*ir.Attr{real1("replaced_value_float", nan),
		floats("imputed_value_floats", 1, 2)}, nil, row(nan, nan))
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[float32](out[0]); !slices.Equal(got, []float32{1, 2}) {
		t.Errorf("got %v", got)
	}
}

// LabelEncoder 4: NaN is a valid key, and the last one of equal keys is used.
func TestKeysOfLabelEncoder(t *testing.T) {
	nan := float32(math.NaN())
	out, err := run("LabelEncoder", 4, []*ir.Attr{floats("keys_floats", nan, 1, 1),
		texts("values_strings", "missing", "no", "one")}, nil, row(nan, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := out[0].Text; !slices.Equal(got, []string{"missing", "one", "_Unused"}) {
		t.Errorf("got %q", got)
	}
}

func TestFirstLabelEncoderMapsBothDirections(t *testing.T) {
	attrs := []*ir.Attr{texts("classes_strings", "a", "b")}
	up, err := run("LabelEncoder", 1, attrs, nil, ir.TextOf([]string{"b", "?"}, 2))
	if err != nil {
		t.Fatal(err)
	}
	down, err := run("LabelEncoder", 1, attrs, nil, ir.ArrayOf([]int64{0, 5}, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[int64](up[0]); !slices.Equal(got, []int64{1, -1}) ||
		!slices.Equal(down[0].Text, []string{"a", "_Unused"}) {
		t.Errorf("got %v and %q", got, down[0].Text)
	}
}

func TestZipMapRoundTrip(t *testing.T) {
	out, err := run("ZipMap", 1, []*ir.Attr{ints("classlabels_int64s", 4, 1)}, nil,
		ir.ArrayOf([]float32{1, 2, 3, 4}, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	second := out[0].Items[1]
	for form, want := range map[string][]float32{"DENSE": {4, 3}, "SPARSE": {0, 4, 0, 0, 3}} {
		back, err := run("CastMap", 1, []*ir.Attr{text("map_form", form), number1("max_map", 5)}, nil, second)
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[float32](back[0]); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", form, got, want)
		}
	}
	row, err := run("DictVectorizer", 1, []*ir.Attr{ints("int64_vocabulary", 1, 2, 4)}, nil, second)
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[float32](row[0]); !slices.Equal(got, []float32{4, 0, 3}) {
		t.Errorf("got %v", got)
	}
}

func TestFeatureVectorizerPadsAndTruncates(t *testing.T) {
	out, err := run("FeatureVectorizer", 1, []*ir.Attr{ints("inputdimensions", 1, 3)}, nil, row(1, 2),
		ir.ArrayOf([]float32{3, 4}, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[float32](out[0]); !slices.Equal(got, []float32{1, 3, 4, 0}) {
		t.Errorf("got %v", got)
	}
}

func TestBadInputsAreErrors(t *testing.T) {
	linear := []*ir.Attr{floats("coefficients", 1, 2), floats("intercepts", 0)}
	for _, c := range []struct {
		typ   string
		attrs []*ir.Attr
		in    []*ir.Array
	}{
		{"LinearRegressor", linear, []*ir.Array{row(1, 2, 3)}},
		{"LinearRegressor", append(linear, number1("targets", 0)), []*ir.Array{row(1, 2)}},
		{"LinearRegressor", append(linear, text("post_transform", "NO")), []*ir.Array{row(1, 2)}},
		{"LinearClassifier", linear, []*ir.Array{row(1, 2)}},
		{"SVMRegressor", []*ir.Attr{floats("coefficients", 1)}, []*ir.Array{row(1)}},
		{"SVMClassifier", []*ir.Attr{ints("classlabels_ints", 0, 1), floats("coefficients", 1), floats("rho", 1),
			ints("vectors_per_class", 1)}, []*ir.Array{row(1)}},
		{"Scaler", []*ir.Attr{floats("scale", 1, 2)}, []*ir.Array{row(1, 2, 3)}},
		{"Normalizer", []*ir.Attr{text("norm", "L3")}, []*ir.Array{row(1)}},
		{"Imputer", nil, []*ir.Array{row(1)}},
		{"LabelEncoder", []*ir.Attr{ints("keys_int64s", 1, 2), ints("values_int64s", 1)},
			[]*ir.Array{ir.ArrayOf([]int64{1}, 1)}},
		{"LabelEncoder", []*ir.Attr{ints("keys_int64s", 1), ints("values_int64s", 1)}, []*ir.Array{row(1)}},
		{"OneHotEncoder", []*ir.Attr{ints("cats_int64s", 1), number1("zeros", 0)}, []*ir.Array{row(2)}},
		{"ArrayFeatureExtractor", nil, []*ir.Array{row(1), ir.ArrayOf([]int64{1}, 1)}},
		{"ZipMap", []*ir.Attr{ints("classlabels_int64s", 1)}, []*ir.Array{row(1, 2)}},
		{"DictVectorizer", nil, []*ir.Array{row(1)}},
		{"Binarizer", nil, []*ir.Array{nil}},
		{"Binarizer", nil, []*ir.Array{{Kind: ir.Map}}},
	} {
		if out, err := run(c.typ, 4, c.attrs, nil, c.in...); err == nil {
			t.Errorf("%s gives %v", c.typ, out)
		}
	}
}
