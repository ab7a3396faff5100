package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestTreeEnsembleRegressor(t *testing.T) {
	checkCases(t, "TreeEnsembleRegressor", []operatorCase{
		{
			name: "BRANCH_LEQ", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), texts("nodes_modes", "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{11, 11, 12, 12, 12}, 5, 1)},
		},
		{
			name: "BRANCH_LT", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), texts("nodes_modes", "BRANCH_LT", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{11, 22, 12, 22, 12}, 5, 1)},
		},
		{
			name: "BRANCH_GTE", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), texts("nodes_modes", "BRANCH_GTE", "LEAF", "LEAF", "BRANCH_GTE", "LEAF", "LEAF"), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{22, 11, 21, 12, 11}, 5, 1)},
		},
		{
			name: "BRANCH_GT", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), texts("nodes_modes", "BRANCH_GT", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{22, 22, 21, 22, 11}, 5, 1)},
		},
		{
			name: "BRANCH_EQ", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), texts("nodes_modes", "BRANCH_EQ", "LEAF", "LEAF", "BRANCH_EQ", "LEAF", "LEAF"), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{22, 11, 22, 12, 12}, 5, 1)},
		},
		{
			name: "BRANCH_NEQ", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), texts("nodes_modes", "BRANCH_NEQ", "LEAF", "LEAF", "BRANCH_NEQ", "LEAF", "LEAF"), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{11, 22, 11, 21, 11}, 5, 1)},
		},
		{
			name: "SUM", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 1), text("aggregate_function", "SUM"), floats("base_values", 0.05)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.45000002, 0.55, 0.55, 0.65000004, 0.55}, 5, 1)},
		},
		{
			name: "AVERAGE", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 1), text("aggregate_function", "AVERAGE"), floats("base_values", 0.05)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.25, 0.3, 0.3, 0.35000002, 0.3}, 5, 1)},
		},
		{
			name: "MIN", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 1), text("aggregate_function", "MIN"), floats("base_values", 0.05)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.15, 0.15, 0.25, 0.25, 0.25}, 5, 1)},
		},
		{
			name: "MAX", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 1), text("aggregate_function", "MAX"), floats("base_values", 0.05)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.35000002, 0.45000002, 0.35000002, 0.45000002, 0.35000002}, 5, 1)},
		},
		{
			name: "NONE", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 2), text("post_transform", "NONE"), floats("base_values", 0.05, 0.15)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.15, 0.45000002, 0.15, 0.55, 0.25, 0.45000002, 0.25, 0.55, 0.25, 0.45000002}, 5, 2)},
		},
		{
			name: "SOFTMAX", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 2), text("post_transform", "SOFTMAX"), floats("base_values", 0.05, 0.15)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.42555746, 0.5744425, 0.40131232, 0.59868765, 0.450166, 0.549834, 0.42555746, 0.5744425, 0.450166, 0.549834}, 5, 2)},
		},
		{
			name: "LOGISTIC", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 2), text("post_transform", "LOGISTIC"), floats("base_values", 0.05, 0.15)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.5374298, 0.6106393, 0.5374298, 0.6341356, 0.5621765, 0.6106393, 0.5621765, 0.6341356, 0.5621765, 0.6106393}, 5, 2)},
		},
		{
			name: "SOFTMAX_ZERO", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 2), text("post_transform", "SOFTMAX_ZERO"), floats("base_values", 0.05, 0.15)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.42555746, 0.5744425, 0.40131232, 0.59868765, 0.450166, 0.549834, 0.42555746, 0.5744425, 0.450166, 0.549834}, 5, 2)},
		},
		{
			name: "PROBIT", version: 1, source: transformed,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), number1("n_targets", 2), text("post_transform", "PROBIT"), floats("base_values", 0.05, 0.15)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{-1.0364333, -0.1256613, -1.0364333, 0.12566137, -0.67448974, -0.1256613, -0.67448974, 0.12566137, -0.67448974, -0.1256613}, 5, 2)},
		},
		{
			name: "one target of two has no votes", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{1, 1, 1, 1}, 1, 2, 3, 4)...), number1("n_targets", 2), text("aggregate_function", "MIN")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 0, 1, 0, 2, 0, 2, 0, 2}, 5, 2)},
		},
		{
			name: "float", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-1, 0, 0, 1, 2, 3}, 3, 2)}, want: []*ir.Array{ir.ArrayOf([]float32{11, 21, 22}, 3, 1)},
		},
		{
			name: "double", version: 1, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]float64{-1, 0, 0, 1, 2, 3}, 3, 2)}, want: []*ir.Array{ir.ArrayOf([]float32{11, 21, 22}, 3, 1)},
		},
		{
			name: "int32", version: 1, source: asFloat,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]int32{-1, 0, 0, 1, 2, 3}, 3, 2)}, want: []*ir.Array{ir.ArrayOf([]float32{11, 21, 22}, 3, 1)},
		},
		{
			name: "int64", version: 1, source: asFloat,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 1, 2, 10, 20)...), number1("n_targets", 1)),
			in:    []*ir.Array{ir.ArrayOf([]int64{-1, 0, 0, 1, 2, 3}, 3, 2)}, want: []*ir.Array{ir.ArrayOf([]float32{11, 21, 22}, 3, 1)},
		},
		{
			name: "version 3, double tensors", version: 3, source: runtime,
			attrs: append(stumps(votes("target", "target_ids", []int64{0, 0, 0, 0}, 0, 0, 0, 0)...), number1("n_targets", 1)),
			arrays: map[string]*ir.Array{
				"nodes_values_as_tensor":   ir.ArrayOf([]float64{0.1, 0, 0, 1.1, 0, 0}, 6),
				"target_weights_as_tensor": ir.ArrayOf([]float64{0.1, 0.2, 10, 20}, 4),
				"base_values_as_tensor":    ir.ArrayOf([]float64{0.3}, 1),
			},
			in: []*ir.Array{ir.ArrayOf([]float64{-1, 0, 0, 1, 2, 3}, 3, 2)}, want: []*ir.Array{ir.ArrayOf([]float32{10.4, 10.4, 20.5}, 3, 1)},
		},
	})
}

func TestTreeEnsembleClassifier(t *testing.T) {
	checkCases(t, "TreeEnsembleClassifier", []operatorCase{
		{
			name: "three classes NONE", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 0.1, 0.2, 0.3, 0.4)...), texts("classlabels_strings", "a", "b", "c"), text("post_transform", "NONE"), floats("base_values", 0.05, 0.15, 0.01)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.TextOf([]string{"c", "a", "b", "a", "b"}, 5), ir.ArrayOf([]float32{0.15, 0.15, 0.31, 0.55, 0.15, 0.01, 0.05, 0.35000002, 0.31, 0.45000002, 0.35000002, 0.01, 0.05, 0.35000002, 0.31}, 5, 3)},
		},
		{
			name: "votes for the second class NONE", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{1, 1, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "NONE")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0, 0.4, 0, 0.5, 0, 0.5, 0, 0.6, 0, 0.5}, 5, 2)},
		},
		{
			name: "votes for the first class NONE", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "NONE")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0.6, 0.4, 0.5, 0.5, 0.5, 0.5, 0.39999998, 0.6, 0.5, 0.5}, 5, 2)},
		},
		{
			name: "three classes SOFTMAX", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 0.1, 0.2, 0.3, 0.4)...), texts("classlabels_strings", "a", "b", "c"), text("post_transform", "SOFTMAX"), floats("base_values", 0.05, 0.15, 0.01)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.TextOf([]string{"c", "a", "b", "a", "b"}, 5), ir.ArrayOf([]float32{0.31510842, 0.31510842, 0.36978316, 0.4438392, 0.29751432, 0.25864652, 0.27421382, 0.37014997, 0.35563618, 0.3923301, 0.35499498, 0.25267488, 0.27421382, 0.37014997, 0.35563618}, 5, 3)},
		},
		{
			name: "votes for the second class SOFTMAX", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{1, 1, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "SOFTMAX")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0.40131232, 0.59868765, 0.37754068, 0.62245935, 0.37754068, 0.62245935, 0.35434368, 0.6456563, 0.37754068, 0.62245935}, 5, 2)},
		},
		{
			name: "votes for the first class SOFTMAX", version: 1, source: mixed,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "SOFTMAX")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0.3100255, 0.6899745, 0.2689414, 0.7310586, 0.2689414, 0.7310586, 0.2314752, 0.7685248, 0.2689414, 0.7310586}, 5, 2)},
		},
		{
			name: "three classes LOGISTIC", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 0.1, 0.2, 0.3, 0.4)...), texts("classlabels_strings", "a", "b", "c"), text("post_transform", "LOGISTIC"), floats("base_values", 0.05, 0.15, 0.01)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.TextOf([]string{"c", "a", "b", "a", "b"}, 5), ir.ArrayOf([]float32{0.5374298, 0.5374298, 0.5768853, 0.6341356, 0.5374298, 0.5025, 0.51249737, 0.5866176, 0.5768853, 0.6106393, 0.5866176, 0.5025, 0.51249737, 0.5866176, 0.5768853}, 5, 3)},
		},
		{
			name: "votes for the second class LOGISTIC", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{1, 1, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "LOGISTIC")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0.5, 0.59868765, 0.5, 0.62245935, 0.5, 0.62245935, 0.5, 0.6456563, 0.5, 0.62245935}, 5, 2)},
		},
		{
			name: "votes for the first class LOGISTIC", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "LOGISTIC")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0.40131235, 0.59868765, 0.37754065, 0.62245935, 0.37754065, 0.62245935, 0.3543437, 0.6456563, 0.37754065, 0.62245935}, 5, 2)},
		},
		{
			name: "three classes SOFTMAX_ZERO", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 0.1, 0.2, 0.3, 0.4)...), texts("classlabels_strings", "a", "b", "c"), text("post_transform", "SOFTMAX_ZERO"), floats("base_values", 0.05, 0.15, 0.01)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.TextOf([]string{"c", "a", "b", "a", "b"}, 5), ir.ArrayOf([]float32{0.31510842, 0.31510842, 0.36978316, 0.4438392, 0.29751432, 0.25864652, 0.27421382, 0.37014997, 0.35563618, 0.3923301, 0.35499498, 0.25267488, 0.27421382, 0.37014997, 0.35563618}, 5, 3)},
		},
		{
			name: "votes for the second class SOFTMAX_ZERO", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{1, 1, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "SOFTMAX_ZERO")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, 5, 2)},
		},
		{
			name: "votes for the first class SOFTMAX_ZERO", version: 1, source: mixed,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "SOFTMAX_ZERO")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0.3100255, 0.6899745, 0.2689414, 0.7310586, 0.2689414, 0.7310586, 0.2314752, 0.7685248, 0.2689414, 0.7310586}, 5, 2)},
		},
		{
			name: "three classes PROBIT", version: 1, source: transformed,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 0.1, 0.2, 0.3, 0.4)...), texts("classlabels_strings", "a", "b", "c"), text("post_transform", "PROBIT"), floats("base_values", 0.05, 0.15, 0.01)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.TextOf([]string{"c", "a", "b", "a", "b"}, 5), ir.ArrayOf([]float32{-1.0364333, -1.0364333, -0.49585035, 0.12566137, -1.0364333, -2.3263478, -1.6448536, -0.3853204, -0.49585035, -0.1256613, -0.3853204, -2.3263478, -1.6448536, -0.3853204, -0.49585035}, 5, 3)},
		},
		{
			name: "votes for the second class PROBIT", version: 1, source: transformed,
			attrs: append(stumps(votes("class", "class_ids", []int64{1, 1, 1, 1}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "PROBIT")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{-inf32, -0.2533471, -inf32, 0, -inf32, 0, -inf32, 0.25334716, -inf32, 0}, 5, 2)},
		},
		{
			name: "votes for the first class PROBIT", version: 1, source: transformed,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 0, 0, 0}, 0.1, 0.2, 0.3, 0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "PROBIT")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{3, 3, 3, 8, 3}, 5), ir.ArrayOf([]float32{0.25334716, -0.2533471, 0, 0, 0, 0, -0.25334716, 0.25334716, 0, 0}, 5, 2)},
		},
		{
			name: "decision values of the second class", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{1, 1, 1, 1}, -0.1, 0.2, 0.3, -0.4)...), ints("classlabels_int64s", 3, 8), text("post_transform", "LOGISTIC")),
			in:    []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{8, 3, 8, 3, 8}, 5), ir.ArrayOf([]float32{0.5, 0.549834, 0.5, 0.37754065, 0.5, 0.62245935, 0.5, 0.45016605, 0.5, 0.62245935}, 5, 2)},
		},
		{
			name: "float", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 1, 2, 3, 4)...), ints("classlabels_int64s", 7, 8, 9)),
			in:    []*ir.Array{ir.ArrayOf([]float32{-1, 0, 0, 1, 2, 3}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{9, 7, 7}, 3), ir.ArrayOf([]float32{1, 0, 3, 5, 0, 0, 4, 2, 0}, 3, 3)},
		},
		{
			name: "double", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 1, 2, 3, 4)...), ints("classlabels_int64s", 7, 8, 9)),
			in:    []*ir.Array{ir.ArrayOf([]float64{-1, 0, 0, 1, 2, 3}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{9, 7, 7}, 3), ir.ArrayOf([]float32{1, 0, 3, 5, 0, 0, 4, 2, 0}, 3, 3)},
		},
		{
			name: "int32", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 1, 2, 3, 4)...), ints("classlabels_int64s", 7, 8, 9)),
			in:    []*ir.Array{ir.ArrayOf([]int32{-1, 0, 0, 1, 2, 3}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{9, 7, 7}, 3), ir.ArrayOf([]float32{1, 0, 3, 5, 0, 0, 4, 2, 0}, 3, 3)},
		},
		{
			name: "int64", version: 1, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 1, 2, 3, 4)...), ints("classlabels_int64s", 7, 8, 9)),
			in:    []*ir.Array{ir.ArrayOf([]int64{-1, 0, 0, 1, 2, 3}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{9, 7, 7}, 3), ir.ArrayOf([]float32{1, 0, 3, 5, 0, 0, 4, 2, 0}, 3, 3)},
		},
		{
			name: "version 3, double tensors", version: 3, source: runtime,
			attrs: append(stumps(votes("class", "class_ids", []int64{0, 1, 2, 0}, 0, 0, 0, 0)...), ints("classlabels_int64s", 7, 8, 9)),
			arrays: map[string]*ir.Array{
				"nodes_values_as_tensor":  ir.ArrayOf([]float64{0.1, 0, 0, 1.1, 0, 0}, 6),
				"class_weights_as_tensor": ir.ArrayOf([]float64{0.1, 0.2, 10, 20}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float64{-1, 0, 0, 1, 2, 3}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{9, 9, 7}, 3), ir.ArrayOf([]float32{0.1, 0, 10, 0.1, 0, 10, 20, 0.2, 0}, 3, 3)},
		},
	})
}
