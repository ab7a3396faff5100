package tabular

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Attributes of wrong lengths or values are errors, not panics.
func TestMalformedAttributesAreErrors(t *testing.T) {
	one, words := []*ir.Array{row(1, 2)}, []*ir.Array{ir.TextOf([]string{"a"}, 1)}
	svm := []*ir.Attr{floats("coefficients", 1, 2), floats("rho", 0), floats("support_vectors", 1, 2, 3, 4),
		floats("kernel_params", 1, 0, 2)}
	regression := with(svm, number1("n_supports", 2))
	classification := with(svm, ints("vectors_per_class", 1, 1), ints("classlabels_ints", 0, 1))
	linear := []*ir.Attr{floats("coefficients", 1, 2, 3, 4), floats("intercepts", 0, 0), ints("classlabels_ints", 0, 1)}
	trees := with(stumps(votes("class", "class_ids", []int64{0, 1, 0, 1}, 1, 2, 3, 4)...),
		ints("classlabels_int64s", 0, 1))
	for _, c := range []struct {
		typ  string
		good []*ir.Attr
		in   []*ir.Array
		bad  []*ir.Attr // each replaces an attribute
	}{
		{"LabelEncoder", []*ir.Attr{texts("keys_strings", "a"), ints("values_int64s", 1)}, words, []*ir.Attr{
			texts("keys_strings"), texts("keys_strings", "a", "b"), ints("values_int64s"), ints("values_int64s", 1, 2),
		}},
		{"CategoryMapper", []*ir.Attr{texts("cats_strings", "a"), ints("cats_int64s", 1)}, words, []*ir.Attr{
			texts("cats_strings"), texts("cats_strings", "a", "b"), ints("cats_int64s"), ints("cats_int64s", 1, 2),
		}},
		{"OneHotEncoder", []*ir.Attr{texts("cats_strings", "a")}, words, []*ir.Attr{
			texts("cats_strings"), // no categories
		}},
		{"Scaler", []*ir.Attr{floats("offset", 1, 2), floats("scale", 1, 2)}, one, []*ir.Attr{
			floats("offset", 1, 2, 3), floats("scale", 1, 2, 3),
		}},
		{"Normalizer", nil, one, []*ir.Attr{text("norm", "max")}},
		{"Imputer", []*ir.Attr{floats("imputed_value_floats", 1, 2)}, one, []*ir.Attr{
			floats("imputed_value_floats"), floats("imputed_value_floats", 1, 2, 3),
		}},
		{"FeatureVectorizer", []*ir.Attr{ints("inputdimensions", 2)}, one, []*ir.Attr{
			ints("inputdimensions"), ints("inputdimensions", 1, 1), ints("inputdimensions", -1),
			ints("inputdimensions", 1<<62),
		}},
		{"ArrayFeatureExtractor", nil, []*ir.Array{row(1, 2), ir.ArrayOf([]int64{1}, 1)}, nil},
		{"ZipMap", []*ir.Attr{ints("classlabels_int64s", 1, 2)}, one, []*ir.Attr{
			ints("classlabels_int64s"), ints("classlabels_int64s", 1, 2, 3), texts("classlabels_strings", "a", "b"),
		}},
		{"LinearRegressor", []*ir.Attr{floats("coefficients", 1, 2), floats("intercepts", 0)}, one, []*ir.Attr{
			floats("coefficients"), floats("coefficients", 1), floats("coefficients", 1, 2, 3),
			floats("intercepts", 0, 0),
			number1("targets", -1), number1("targets", 2), number1("targets", 1<<40), text("post_transform", "softmax"),
		}},
		{"LinearClassifier", linear, one, []*ir.Attr{
			floats("coefficients"), floats("coefficients", 1, 2, 3), floats("intercepts", 0, 0, 0),
			ints("classlabels_ints"),
			ints("classlabels_ints", 0, 1, 2), texts("classlabels_strings", "a", "b"), text("post_transform", ""),
		}},
		{"SVMRegressor", regression, one, []*ir.Attr{
			floats("coefficients"), floats("coefficients", 1), floats("coefficients", 1, 2, 3), floats("rho"),
			floats("support_vectors"),
			floats("support_vectors", 1, 2, 3), floats("support_vectors", 1, 2), floats("kernel_params", 1),
			number1("n_supports", -1),
			number1("n_supports", 3), text("kernel_type", "linear"), text("post_transform", "NO"),
		}},
		{"SVMClassifier", classification, one, []*ir.Attr{
			floats("coefficients"), floats("coefficients", 1), floats("coefficients", 1, 2, 3), floats("rho"),
			floats("support_vectors"),
			floats("support_vectors", 1, 2, 3), floats("kernel_params", 1, 2), ints("vectors_per_class", 2),
			ints("vectors_per_class", -1, 3),
			ints("vectors_per_class", 1, 1<<40), ints("vectors_per_class", 1, 1, 0), ints("classlabels_ints", 0),
			ints("classlabels_ints"),
			floats("prob_a", 1), floats("prob_b", 1), text("kernel_type", ""), text("post_transform", "NO"),
		}},
		{"TreeEnsembleClassifier", trees, one, []*ir.Attr{
			ints("class_ids", 0, 1), ints("class_ids", 0, 1, 0, 2), ints("class_ids", 0, 1, 0, -1),
			ints("class_treeids"), ints("class_nodeids", 1),
			floats("class_weights", 1), floats("base_values", 1, 2, 3), ints("classlabels_int64s"),
			texts("classlabels_strings", "a", "b"),
			ints("nodes_treeids", 0), ints("nodes_nodeids"), ints("nodes_truenodeids", 1), ints("nodes_falsenodeids"),
			floats("nodes_values", 1),
			texts("nodes_modes", "LEAF"), ints("nodes_missing_value_tracks_true", 1), text("post_transform", "NO"),
		}},
	} {
		if _, err := run(c.typ, 4, c.good, nil, c.in...); err != nil {
			t.Errorf("%s: %v", c.typ, err)
		}
		for _, a := range c.bad {
			if out, err := run(c.typ, 4, with(c.good, a), nil, c.in...); err == nil {
				t.Errorf("%s with %s %v%v%v%v%q gives %v", c.typ, a.Name, a.Floats, a.Ints, a.Strings, a.I, a.S,
					contents(out[0]))
			}
		}
	}
}

// with are the attributes and one more each, which replaces one of its name.
func with(attrs []*ir.Attr, more ...*ir.Attr) []*ir.Attr {
	return append(attrs[:len(attrs):len(attrs)], more...)
}

func ensembleAttrs() []*ir.Attr {
	return []*ir.Attr{
		ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
		ints("nodes_falsenodeids", 1, 3),
		ints("nodes_falseleafs", 1, 1), ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 0, 0, 0),
		number1("n_targets", 1),
	}
}

func ensembleArrays() map[string]*ir.Array {
	return map[string]*ir.Array{
		"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 6}, 2),
		"leaf_weights": ir.ArrayOf([]float32{1, 2, 3, 4}, 4), "membership_values": ir.ArrayOf([]float32{2, nan32}, 2),
	}
}

func TestMalformedTreeEnsemblesAreErrors(t *testing.T) {
	if _, err := run("TreeEnsemble", 5, ensembleAttrs(), ensembleArrays(), row(1, 2)); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*ir.Attr{
		ints("nodes_featureids", 0), ints("nodes_featureids", 0, -1), ints("nodes_featureids", 0, 2),
		ints("nodes_truenodeids", 0),
		ints("nodes_truenodeids", 0, 4), ints("nodes_truenodeids", 0, -1), ints("nodes_trueleafs", 1),
		ints("nodes_falsenodeids"),
		ints("nodes_falseleafs", 1, 0), // node 3 is a leaf only in its own numbering
		ints("nodes_trueleafs", 0, 1),  // a cycle
		ints("nodes_missing_value_tracks_true", 1), ints("tree_roots", 0, 2), ints("tree_roots", -1),
		ints("leaf_targetids", 0, 0, 0),
		ints("leaf_targetids", 0, 0, 0, 1), number1("n_targets", 0), number1("aggregate_function", 4),
		number1("post_transform", 5),
	} {
		if out, err := run("TreeEnsemble", 5, with(ensembleAttrs(), a), ensembleArrays(), row(1, 2)); err == nil {
			t.Errorf("%s %v%v gives %v", a.Name, a.Ints, a.I, contents(out[0]))
		}
	}
	for name, bad := range map[string]*ir.Array{
		"nodes_splits": ir.ArrayOf([]float32{0}, 1), "nodes_modes": ir.ArrayOf([]uint8{0, 7}, 2),
		"leaf_weights":      ir.ArrayOf([]float32{1}, 1),
		"membership_values": nil, "nodes_modes of floats": ir.ArrayOf([]float32{0, nan32}, 2),
	} {
		arrays := ensembleArrays()
		arrays[strings.TrimSuffix(name, " of floats")] = bad
		if out, err := run("TreeEnsemble", 5, ensembleAttrs(), arrays, row(1, 2)); err == nil {
			t.Errorf("%s %v gives %v", name, bad, contents(out[0]))
		}
	}
}
