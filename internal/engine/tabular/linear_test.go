package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestLinearRegressor(t *testing.T) {
	checkCases(t, "LinearRegressor", []operatorCase{
		{
			name: "two targets NONE", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), number1("targets", 2),
				text("post_transform", "NONE"),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.3, 0.625, 0.425, 0.375}, 2, 2)},
		},
		{
			name: "two targets SOFTMAX", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), number1("targets", 2),
				text("post_transform", "SOFTMAX"),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.4194577, 0.58054227, 0.5124974, 0.4875026}, 2, 2)},
		},
		{
			name: "two targets LOGISTIC", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), number1("targets", 2),
				text("post_transform", "LOGISTIC"),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.5744425, 0.65135485, 0.6046791, 0.5926666}, 2, 2)},
		},
		{
			name: "two targets SOFTMAX_ZERO", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), number1("targets", 2),
				text("post_transform", "SOFTMAX_ZERO"),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.4194577, 0.58054227, 0.5124974, 0.4875026}, 2, 2)},
		},
		{
			name: "two targets PROBIT", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), number1("targets", 2),
				text("post_transform", "PROBIT"),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{-0.5244005, 0.31863937, -0.1891184, -0.31863937}, 2, 2)},
		},
		{
			name: "without intercepts", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{2, -2.75, 0}, 3, 1)},
		},
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5), floats("intercepts", 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{2.25, -0.25, 0.25}, 3, 1)},
		},
		{
			name: "double", version: 1, source: asFloat,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5), floats("intercepts", 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{2.25, -0.25, 0.25}, 3, 1)},
		},
		{
			name: "int32", version: 1, source: asFloat,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5), floats("intercepts", 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{2.25, -0.25, 0.25}, 3, 1)},
		},
		{
			name: "int64", version: 1, source: asFloat,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5), floats("intercepts", 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{2.25, -0.25, 0.25}, 3, 1)},
		},
	})
}

func TestLinearClassifier(t *testing.T) {
	checkCases(t, "LinearClassifier", []operatorCase{
		{
			name: "three classes NONE", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("intercepts", 0.1, 0.2, 0),
				ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "NONE"), number1("multi_class", 1),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{0.3, 0.625, 0.3, 0.425, 0.375, 0.35000002}, 2, 3)},
		},
		{
			name: "two scores NONE", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), ints("classlabels_ints", 4, 5),
				text("post_transform", "NONE"),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2), ir.ArrayOf([]float32{0.3, 0.625, 0.425, 0.375}, 2, 2)},
		},
		{
			name: "one score NONE", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, -2), floats("intercepts", 0.4), texts("classlabels_strings", "no", "yes"),
				text("post_transform", "NONE"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.TextOf([]string{"yes", "yes"}, 2),
				ir.ArrayOf([]float32{0.9, 0.099999994, 0.39999998, 0.6}, 2, 2)},
		},
		{
			name: "three classes SOFTMAX", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("intercepts", 0.1, 0.2, 0),
				ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "SOFTMAX"), number1("multi_class", 1),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{0.2955056, 0.4089888, 0.2955056, 0.34734613, 0.33040583, 0.3222481}, 2, 3)},
		},
		{
			name: "two scores SOFTMAX", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), ints("classlabels_ints", 4, 5),
				text("post_transform", "SOFTMAX"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{0.4194577, 0.58054227, 0.5124974, 0.4875026}, 2, 2)},
		},
		{
			name: "one score SOFTMAX", version: 1, source: reference,
			attrs: []*ir.Attr{
				floats("coefficients", 1, -2), floats("intercepts", 0.4), texts("classlabels_strings", "no", "yes"),
				text("post_transform", "SOFTMAX"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.TextOf([]string{"yes", "yes"}, 2),
				ir.ArrayOf([]float32{0.450166, 0.54983395, 0.2314752, 0.7685248}, 2, 2)},
		},
		{
			name: "three classes LOGISTIC", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("intercepts", 0.1, 0.2, 0),
				ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "LOGISTIC"), number1("multi_class", 1),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{0.5744425, 0.65135485, 0.5744425, 0.6046791, 0.5926666, 0.5866176}, 2, 3)},
		},
		{
			name: "two scores LOGISTIC", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), ints("classlabels_ints", 4, 5),
				text("post_transform", "LOGISTIC"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{0.5744425, 0.65135485, 0.6046791, 0.5926666}, 2, 2)},
		},
		{
			name: "one score LOGISTIC", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, -2), floats("intercepts", 0.4), texts("classlabels_strings", "no", "yes"),
				text("post_transform", "LOGISTIC"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.TextOf([]string{"yes", "yes"}, 2),
				ir.ArrayOf([]float32{0.47502083, 0.5249792, 0.3543437, 0.6456563}, 2, 2)},
		},
		{
			name: "three classes SOFTMAX_ZERO", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("intercepts", 0.1, 0.2, 0),
				ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "SOFTMAX_ZERO"), number1("multi_class", 1),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{0.2955056, 0.4089888, 0.2955056, 0.34734613, 0.33040583, 0.3222481}, 2, 3)},
		},
		{
			name: "two scores SOFTMAX_ZERO", version: 1, source: runtime,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), ints("classlabels_ints", 4, 5),
				text("post_transform", "SOFTMAX_ZERO"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{0.4194577, 0.58054227, 0.5124974, 0.4875026}, 2, 2)},
		},
		{
			name: "one score SOFTMAX_ZERO", version: 1, source: reference,
			attrs: []*ir.Attr{
				floats("coefficients", 1, -2), floats("intercepts", 0.4), texts("classlabels_strings", "no", "yes"),
				text("post_transform", "SOFTMAX_ZERO"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.TextOf([]string{"yes", "yes"}, 2),
				ir.ArrayOf([]float32{0.450166, 0.54983395, 0.2314752, 0.7685248}, 2, 2)},
		},
		{
			name: "three classes PROBIT", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2, 1, 1), floats("intercepts", 0.1, 0.2, 0),
				ints("classlabels_ints", 4, 5, 6),
				text("post_transform", "PROBIT"), number1("multi_class", 1),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{-0.5244005, 0.31863937, -0.5244005, -0.1891184, -0.31863937, -0.3853204}, 2, 3)},
		},
		{
			name: "two scores PROBIT", version: 1, source: transformed,
			attrs: []*ir.Attr{
				floats("coefficients", 1, 0.5, 0.25, 2), floats("intercepts", 0.1, 0.2), ints("classlabels_ints", 4, 5),
				text("post_transform", "PROBIT"),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.05}, 2, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{5, 4}, 2),
				ir.ArrayOf([]float32{-0.5244005, 0.31863937, -0.1891184, -0.31863937}, 2, 2)},
		},
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5, -1, 2), floats("intercepts", 0.25, 0),
				ints("classlabels_ints", 1, 2)},
			in: []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{2, 2, 1}, 3),
				ir.ArrayOf([]float32{2.25, 3, -0.25, 13, 0.25, 0}, 3, 2)},
		},
		{
			name: "double", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5, -1, 2), floats("intercepts", 0.25, 0),
				ints("classlabels_ints", 1, 2)},
			in: []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{2, 2, 1}, 3),
				ir.ArrayOf([]float32{2.25, 3, -0.25, 13, 0.25, 0}, 3, 2)},
		},
		{
			name: "int32", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5, -1, 2), floats("intercepts", 0.25, 0),
				ints("classlabels_ints", 1, 2)},
			in: []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{2, 2, 1}, 3),
				ir.ArrayOf([]float32{2.25, 3, -0.25, 13, 0.25, 0}, 3, 2)},
		},
		{
			name: "int64", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("coefficients", 1, 0.5, -1, 2), floats("intercepts", 0.25, 0),
				ints("classlabels_ints", 1, 2)},
			in: []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{2, 2, 1}, 3),
				ir.ArrayOf([]float32{2.25, 3, -0.25, 13, 0.25, 0}, 3, 2)},
		},
	})
}
