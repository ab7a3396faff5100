package opset

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// tableRequirement is the number of features that an operator of ai.onnx.ml requires.
func tableRequirement(op string) func(f *inference, n *ir.Node) []requirement {
	exactly := func(count func(n *ir.Node) int64) func(f *inference, n *ir.Node) []requirement {
		return func(f *inference, n *ir.Node) []requirement { return f.last(n, count(n), isEqual) }
	}
	switch op {
	case "ai.onnx.ml.TreeEnsemble", "ai.onnx.ml.TreeEnsembleClassifier", "ai.onnx.ml.TreeEnsembleRegressor":
		return treeFeatures
	case "ai.onnx.ml.LinearClassifier", "ai.onnx.ml.LinearRegressor":
		return exactly(linearFeatures)
	case "ai.onnx.ml.SVMClassifier", "ai.onnx.ml.SVMRegressor":
		return exactly(vectorFeatures)
	case "ai.onnx.ml.Scaler":
		return exactly(func(n *ir.Node) int64 { return several(max(count(n, "scale"), count(n, "offset"))) })
	case "ai.onnx.ml.Imputer":
		return exactly(func(n *ir.Node) int64 {
			return several(max(count(n, "imputed_value_floats"), count(n, "imputed_value_int64s")))
		})
	case "ai.onnx.ml.ArrayFeatureExtractor":
		return extracted
	}
	return nil
}

// count is the length of a list attribute.
func count(n *ir.Node, name string) int64 {
	a := n.Attr(name)
	if a == nil {
		return 0
	}
	return int64(max(len(a.Floats), len(a.Ints), len(a.Strings)))
}

// several is k, or unknown where one element is for all features.
func several(k int64) int64 {
	if k < 2 {
		return -1
	}
	return k
}

// treeFeatures requires the features that nodes of the trees read.
func treeFeatures(f *inference, n *ir.Node) []requirement {
	ids, _ := attrInts(n, "nodes_featureids")
	if len(ids) == 0 {
		return nil
	}
	return f.last(n, slices.Max(ids)+1, isAtLeast)
}

// linearFeatures is the number of coefficients for each target.
func linearFeatures(n *ir.Node) int64 {
	targets := max(n.Int("targets", 1), count(n, "intercepts"))
	if n.Op.Type == "LinearClassifier" {
		targets = max(count(n, "intercepts"), 1)
	}
	if k := count(n, "coefficients"); k > 0 && k%targets == 0 {
		return k / targets
	}
	return -1
}

// vectorFeatures is the number of elements of a support vector, or of coefficients without such vectors.
func vectorFeatures(n *ir.Node) int64 {
	vectors := n.Int("n_supports", 0)
	if per, ok := attrInts(n, "vectors_per_class"); ok {
		for _, k := range per {
			vectors += k
		}
	}
	if k := count(n, "support_vectors"); vectors > 0 && k > 0 && k%vectors == 0 {
		return k / vectors
	}
	return -1
}

// extracted requires the constant positions that are selected.
func extracted(f *inference, n *ir.Node) []requirement {
	is, ok := n.Input(1).Ints()
	if !ok || len(is) == 0 {
		return nil
	}
	return f.last(n, slices.Max(is)+1, isAtLeast)
}
