package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestSVMRegressor(t *testing.T) {
	checkCases(t, "SVMRegressor", []operatorCase{
		{
			name: "LINEAR", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), number1("n_supports", 3),
				floats("coefficients", 1, -0.5, 0.25),
				floats("rho", 0.1),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{3.85, -2.2125, 0.1}, 3, 1)},
		},
		{
			name: "POLY", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "POLY"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), number1("n_supports", 3),
				floats("coefficients", 1, -0.5, 0.25),
				floats("rho", 0.1),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{6.322656, -2.7873292, 0.11171875}, 3, 1)},
		},
		{
			name: "RBF", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "RBF"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				number1("n_supports", 3), floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.77226, 0.03724637, 0.37516046}, 3, 1)},
		},
		{
			name: "SIGMOID", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "SIGMOID"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), number1("n_supports", 3),
				floats("coefficients", 1, -0.5, 0.25),
				floats("rho", 0.1),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{1.2496548, -0.46017405, 0.283689}, 3, 1)},
		},
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				number1("n_supports", 3),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{3.85, 3.975, 0.1}, 3, 1)},
		},
		{
			name: "double", version: 1, source: asFloat,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				number1("n_supports", 3),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{3.85, 3.975, 0.1}, 3, 1)},
		},
		{
			name: "int32", version: 1, source: asFloat,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				number1("n_supports", 3),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{3.85, 3.975, 0.1}, 3, 1)},
		},
		{
			name: "int64", version: 1, source: asFloat,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				number1("n_supports", 3),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{3.85, 3.975, 0.1}, 3, 1)},
		},
		{
			name: "linear NONE", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5), floats("rho", 0.1), text("post_transform", "NONE"),
				floats("kernel_params", 0, 0, 3)},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.3, 0.425}, 2, 1)},
		},
		{
			name: "linear SOFTMAX", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5), floats("rho", 0.1), text("post_transform", "SOFTMAX"),
				floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{1, 1}, 2, 1)},
		},
		{
			name: "linear LOGISTIC", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5), floats("rho", 0.1), text("post_transform", "LOGISTIC"),
				floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.5744425, 0.6046791}, 2, 1)},
		},
		{
			name: "linear SOFTMAX_ZERO", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5), floats("rho", 0.1), text("post_transform", "SOFTMAX_ZERO"),
				floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{1, 1}, 2, 1)},
		},
		{
			name: "linear PROBIT", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5), floats("rho", 0.1), text("post_transform", "PROBIT"),
				floats("kernel_params", 0, 0, 3),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{-0.5244005, -0.1891184}, 2, 1)},
		},
		{
			name: "one class", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "RBF"), floats("kernel_params", 0.5, 0, 0),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				number1("n_supports", 3), floats("coefficients", 1, -0.5, 0.25), floats("rho", -0.1),
				number1("one_class", 1),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{1, -1, 1}, 3, 1)},
		},
	})
}

func TestSVMClassifier(t *testing.T) {
	checkCases(t, "SVMClassifier", []operatorCase{
		{
			name: "two classes LINEAR", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), ints("classlabels_ints", 3, 8),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 8, 3}, 3),
				ir.ArrayOf([]float32{-3.85, 3.85, 2.2125, -2.2125, -0.1, 0.1}, 3, 2)},
		},
		{
			name: "three classes LINEAR", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), ints("vectors_per_class", 1, 1, 1),
				floats("coefficients", 1, -0.5, 0.25, 0.5, 0.75, -1), floats("rho", 0.1, -0.2, 0.3),
				texts("classlabels_strings", "a", "b", "c"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.TextOf([]string{"a", "b", "a"}, 3),
				ir.ArrayOf([]float32{2.85, 2.05, -4.075, -2.4625, -0.45, 1.64375, 0.1, -0.2, 0.3}, 3, 3)},
		},
		{
			name: "two classes POLY", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "POLY"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), ints("classlabels_ints", 3, 8),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 8, 3}, 3),
				ir.ArrayOf([]float32{-6.322656, 6.322656, 2.7873292, -2.7873292, -0.11171875, 0.11171875}, 3, 2)},
		},
		{
			name: "three classes POLY", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "POLY"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), ints("vectors_per_class", 1, 1, 1),
				floats("coefficients", 1, -0.5, 0.25, 0.5, 0.75, -1), floats("rho", 0.1, -0.2, 0.3),
				texts("classlabels_strings", "a", "b", "c"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.TextOf([]string{"a", "b", "a"}, 3),
				ir.ArrayOf([]float32{3.475, 4.3351564, -11.090625, -2.892798, -0.10234375, 4.3438845, 0.1078125,
					-0.18828125, 0.29609376}, 3, 3)},
		},
		{
			name: "two classes RBF", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "RBF"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1), floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1),
				ints("classlabels_ints", 3, 8),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3, 3}, 3),
				ir.ArrayOf([]float32{-0.77225995, 0.77225995, -0.037246373, 0.037246373, -0.37516046, 0.37516046}, 3,
					2)},
		},
		{
			name: "three classes RBF", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "RBF"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 1, 1, 1), floats("coefficients", 1, -0.5, 0.25, 0.5, 0.75, -1),
				floats("rho", 0.1, -0.2, 0.3), texts("classlabels_strings", "a", "b", "c"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.TextOf([]string{"a", "a", "a"}, 3),
				ir.ArrayOf([]float32{0.6206273, 0.21926339, -0.28457943, 0.03634473, -0.19813314, 0.39477202,
					0.34132662, 0.10146454, 0.605567}, 3, 3)},
		},
		{
			name: "two classes SIGMOID", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "SIGMOID"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), ints("classlabels_ints", 3, 8),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 8, 3}, 3),
				ir.ArrayOf([]float32{-1.2496548, 1.2496548, 0.46017402, -0.46017402, -0.283689, 0.283689}, 3, 2)},
		},
		{
			name: "three classes SIGMOID", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "SIGMOID"), floats("kernel_params", 0.5, 0.25, 3),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2), ints("vectors_per_class", 1, 1, 1),
				floats("coefficients", 1, -0.5, 0.25, 0.5, 0.75, -1), floats("rho", 0.1, -0.2, 0.3),
				texts("classlabels_strings", "a", "b", "c"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.TextOf([]string{"a", "b", "a"}, 3),
				ir.ArrayOf([]float32{1.0051482, 0.49708062, -0.67802614, -0.6189613, -0.16367209, 0.37591493,
					0.22245933, -0.016311008, 0.23877035}, 3, 3)},
		},
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), ints("classlabels_ints", 3, 8),
				floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3, 3}, 3),
				ir.ArrayOf([]float32{-3.85, 3.85, -3.975, 3.975, -0.1, 0.1}, 3, 2)},
		},
		{
			name: "double", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), ints("classlabels_ints", 3, 8),
				floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3, 3}, 3),
				ir.ArrayOf([]float32{-3.85, 3.85, -3.975, 3.975, -0.1, 0.1}, 3, 2)},
		},
		{
			name: "int32", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), ints("classlabels_ints", 3, 8),
				floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3, 3}, 3),
				ir.ArrayOf([]float32{-3.85, 3.85, -3.975, 3.975, -0.1, 0.1}, 3, 2)},
		},
		{
			name: "int64", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", 0.1), ints("classlabels_ints", 3, 8),
				floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3, 3}, 3),
				ir.ArrayOf([]float32{-3.85, 3.85, -3.975, 3.975, -0.1, 0.1}, 3, 2)},
		},
		{
			name: "linear NONE", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("rho", 0.1), ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "NONE"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 6}, 2),
				ir.ArrayOf([]float32{0.3, 0.52500004, 0.4, 0.425, 0.275, 0.45000002}, 2, 3)},
		},
		{
			name: "one pair NONE", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", -0.1), ints("classlabels_ints", 3, 8),
				text("post_transform", "NONE"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3}, 2),
				ir.ArrayOf([]float32{-0.275, 0.275, -0.26875, 0.26875}, 2, 2)},
		},
		{
			name: "linear SOFTMAX", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("rho", 0.1), ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "SOFTMAX"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 6}, 2),
				ir.ArrayOf([]float32{0.29784122, 0.37299332, 0.32916546, 0.34649757, 0.29823324, 0.3552692}, 2, 3)},
		},
		{
			name: "one pair SOFTMAX", version: 1, source: reference,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", -0.1), ints("classlabels_ints", 3, 8),
				text("post_transform", "SOFTMAX"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3}, 2),
				ir.ArrayOf([]float32{0.36586437, 0.6341356, 0.36876935, 0.63123065}, 2, 2)},
		},
		{
			name: "linear LOGISTIC", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("rho", 0.1), ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "LOGISTIC"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 6}, 2),
				ir.ArrayOf([]float32{0.5744425, 0.62831616, 0.59868765, 0.6046791, 0.56832, 0.6106392}, 2, 3)},
		},
		{
			name: "one pair LOGISTIC", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", -0.1), ints("classlabels_ints", 3, 8),
				text("post_transform", "LOGISTIC"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3}, 2),
				ir.ArrayOf([]float32{0.43168002, 0.56832, 0.433214, 0.566786}, 2, 2)},
		},
		{
			name: "linear SOFTMAX_ZERO", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("rho", 0.1), ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "SOFTMAX_ZERO"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 6}, 2),
				ir.ArrayOf([]float32{0.29784122, 0.37299332, 0.32916546, 0.34649757, 0.29823324, 0.3552692}, 2, 3)},
		},
		{
			name: "one pair SOFTMAX_ZERO", version: 1, source: reference,
			attrs: []*ir.Attr{
				text("kernel_type", "LINEAR"), floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1),
				floats("coefficients", 1, -0.5, 0.25), floats("rho", -0.1), ints("classlabels_ints", 3, 8),
				text("post_transform", "SOFTMAX_ZERO"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3}, 2),
				ir.ArrayOf([]float32{0.36586437, 0.6341356, 0.36876935, 0.63123065}, 2, 2)},
		},
		{
			name: "linear PROBIT", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("rho", 0.1), ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "PROBIT"), floats("kernel_params", 0, 0, 3),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 6}, 2),
				ir.ArrayOf([]float32{-0.5244005, 0.062706865, -0.2533471, -0.1891184, -0.5977601, -0.1256613}, 2, 3)},
		},
		{
			name: "probabilities of two classes", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "RBF"), floats("kernel_params", 0.5, 0, 0),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 2, 1), floats("coefficients", 1, -0.5, -0.25), floats("rho", 0.1),
				floats("prob_a", -1.5),
				floats("prob_b", 0.2), ints("classlabels_ints", 3, 8),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3, 3}, 3),
				ir.ArrayOf([]float32{0.6220676, 0.37793243, 0.46334162, 0.53665835, 0.56482154, 0.43517846}, 3, 2)},
		},
		{
			name: "probabilities of three classes", version: 1, source: runtime,
			attrs: []*ir.Attr{
				text("kernel_type", "RBF"), floats("kernel_params", 0.5, 0, 0),
				floats("support_vectors", 0.5, 1, -1, 0.25, 0, 2),
				ints("vectors_per_class", 1, 1, 1), floats("coefficients", 1, -0.5, 0.25, 0.5, 0.75, -1),
				floats("rho", 0.1, -0.2, 0.3), floats("prob_a", -1.5, -1, -2), floats("prob_b", 0.2, 0, -0.1),
				ints("classlabels_ints", 3, 8, 9),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{3, 3, 3}, 3),
				ir.ArrayOf([]float32{0.43780515, 0.21376549, 0.3484295, 0.30453178, 0.4475695, 0.24789877, 0.4050885,
					0.39120913, 0.20370238}, 3, 3)},
		},
	})
}
