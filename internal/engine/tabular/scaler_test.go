package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestScaler(t *testing.T) {
	checkCases(t, "Scaler", []operatorCase{
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("offset", 1, -0.5), floats("scale", 2, 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 0.625, -8, 1.375, -2, 0.125}, 3, 2)},
		},
		{
			name: "double", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("offset", 1, -0.5), floats("scale", 2, 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 0.625, -8, 1.375, -2, 0.125}, 3, 2)},
		},
		{
			name: "int32", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("offset", 1, -0.5), floats("scale", 2, 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 0.625, -8, 1.375, -2, 0.125}, 3, 2)},
		},
		{
			name: "int64", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("offset", 1, -0.5), floats("scale", 2, 0.25)},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 0.625, -8, 1.375, -2, 0.125}, 3, 2)},
		},
		{
			name: "one value for all features", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("offset", 1), floats("scale", 2)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 2, -8, -1, -2, -2}, 3, 2)},
		},
		{
			name: "one row", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("offset", 1, 3), floats("scale", 2, 3)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2}, 2)}, want: []*ir.Array{ir.ArrayOf([]float32{0, -3}, 2)},
		},
	})
}

func TestNormalizer(t *testing.T) {
	checkCases(t, "Normalizer", []operatorCase{
		{
			name: "float L1", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L1")},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.33333334, 0.6666667, -0.375, 0.625, 0, 0}, 3, 2)},
		},
		{
			name: "float L2", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L2")},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.4472136, 0.8944272, -0.5144958, 0.8574929, 0, 0}, 3, 2)},
		},
		{
			name: "float MAX", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "MAX")},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.5, 1, -0.6, 1, 0, 0}, 3, 2)},
		},
		{
			name: "double L1", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L1")},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.33333334, 0.6666667, -0.375, 0.625, 0, 0}, 3, 2)},
		},
		{
			name: "double L2", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L2")},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.4472136, 0.8944272, -0.5144958, 0.8574929, 0, 0}, 3, 2)},
		},
		{
			name: "double MAX", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "MAX")},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.5, 1, -0.6, 1, 0, 0}, 3, 2)},
		},
		{
			name: "int32 L1", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L1")},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.33333334, 0.6666667, -0.375, 0.625, 0, 0}, 3, 2)},
		},
		{
			name: "int32 L2", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L2")},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.4472136, 0.8944272, -0.5144958, 0.8574929, 0, 0}, 3, 2)},
		},
		{
			name: "int32 MAX", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "MAX")},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.5, 1, -0.6, 1, 0, 0}, 3, 2)},
		},
		{
			name: "int64 L1", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L1")},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.33333334, 0.6666667, -0.375, 0.625, 0, 0}, 3, 2)},
		},
		{
			name: "int64 L2", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L2")},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.4472136, 0.8944272, -0.5144958, 0.8574929, 0, 0}, 3, 2)},
		},
		{
			name: "int64 MAX", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "MAX")},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0.5, 1, -0.6, 1, 0, 0}, 3, 2)},
		},
		{
			name: "one row", version: 1, source: runtime,
			attrs: []*ir.Attr{text("norm", "L2")},
			in:    []*ir.Array{ir.ArrayOf([]float32{3, 4}, 2)}, want: []*ir.Array{ir.ArrayOf([]float32{0.6, 0.8}, 2)},
		},
		{
			name: "default norm", version: 1, source: runtime,
			in:   []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 0.5, 0, 0}, 3, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.5, 1, -6, 1, 0, 0}, 3, 2)},
		},
	})
}

func TestBinarizer(t *testing.T) {
	checkCases(t, "Binarizer", []operatorCase{
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{real1("threshold", 1)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 0, 1, 0, 0}, 3, 2)},
		},
		{
			name: "double", version: 1, source: reference,
			attrs: []*ir.Attr{real1("threshold", 1)},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float64{0, 1, 0, 1, 0, 0}, 3, 2)},
		},
		{
			name: "int32", version: 1, source: reference,
			attrs: []*ir.Attr{real1("threshold", 1)},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int32{0, 1, 0, 1, 0, 0}, 3, 2)},
		},
		{
			name: "int64", version: 1, source: reference,
			attrs: []*ir.Attr{real1("threshold", 1)},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 2, -3, 5, 0, 0}, 3, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{0, 1, 0, 1, 0, 0}, 3, 2)},
		},
		{
			name: "default threshold", version: 1, source: reference,
			in:   []*ir.Array{ir.ArrayOf([]float32{-1, 0, 0.5, nan32}, 4)},
			want: []*ir.Array{ir.ArrayOf([]float32{0, 0, 1, 0}, 4)},
		},
	})
}

func TestImputer(t *testing.T) {
	checkCases(t, "Imputer", []operatorCase{
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("imputed_value_floats", 7, 8), real1("replaced_value_float", 0)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 0, 0, 4}, 2, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 8, 7, 4}, 2, 2)},
		},
		{
			name: "float, NaN, one value", version: 1, source: runtime,
			attrs: []*ir.Attr{floats("imputed_value_floats", 7.5), real1("replaced_value_float", nan32)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, nan32, nan32, 4}, 2, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 7.5, 7.5, 4}, 2, 2)},
		},
		{
			name: "double", version: 1, source: reference,
			attrs: []*ir.Attr{floats("imputed_value_floats", 7, 8), real1("replaced_value_float", nan32)},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, nan64, nan64, 4}, 2, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float64{1, 8, 7, 4}, 2, 2)},
		},
		{
			name: "int64", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("imputed_value_int64s", 7, 8), number1("replaced_value_int64", -1)},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, -1, -1, 4}, 2, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int64{1, 8, 7, 4}, 2, 2)},
		},
		{
			name: "int32", version: 1, source: reference,
			attrs: []*ir.Attr{ints("imputed_value_int64s", 7, 8), number1("replaced_value_int64", -1)},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, -1, -1, 4}, 2, 2)},
			want:  []*ir.Array{ir.ArrayOf([]int32{1, 8, 7, 4}, 2, 2)},
		},
	})
}
