package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestLabelEncoder(t *testing.T) {
	checkCases(t, "LabelEncoder", []operatorCase{
		{
			name: "strings to int64s", version: 2, source: runtime,
			attrs: []*ir.Attr{texts("keys_strings", "a", "b"), ints("values_int64s", 10, 20),
				number1("default_int64", -7)},
			in:   []*ir.Array{ir.TextOf([]string{"b", "a", "?"}, 3)},
			want: []*ir.Array{ir.ArrayOf([]int64{20, 10, -7}, 3)},
		},
		{
			name: "strings to floats", version: 2, source: runtime,
			attrs: []*ir.Attr{texts("keys_strings", "a", "b"), floats("values_floats", 0.5, 1.5)},
			in:    []*ir.Array{ir.TextOf([]string{"b", "a", "?"}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1.5, 0.5, 0}, 3)},
		},
		{
			name: "strings to strings", version: 2, source: runtime,
			attrs: []*ir.Attr{texts("keys_strings", "a", "b"), texts("values_strings", "x", "y"),
				text("default_string", "none")},
			in:   []*ir.Array{ir.TextOf([]string{"b", "a", "?"}, 3, 1)},
			want: []*ir.Array{ir.TextOf([]string{"y", "x", "none"}, 3, 1)},
		},
		{
			name: "int64s to strings", version: 2, source: runtime,
			attrs: []*ir.Attr{ints("keys_int64s", 1, 2), texts("values_strings", "x", "y")},
			in:    []*ir.Array{ir.ArrayOf([]int64{2, 1, 3}, 3)},
			want:  []*ir.Array{ir.TextOf([]string{"y", "x", "_Unused"}, 3)},
		},
		{
			name: "int64s to int64s above 2^53", version: 2, source: runtime,
			attrs: []*ir.Attr{
				ints("keys_int64s", 9007199254740992, 9007199254740993),
				ints("values_int64s", 9007199254740995, 9007199254740997),
				number1("default_int64", 9007199254740999),
			},
			in:   []*ir.Array{ir.ArrayOf([]int64{9007199254740993, 9007199254740992, 0}, 3)},
			want: []*ir.Array{ir.ArrayOf([]int64{9007199254740997, 9007199254740995, 9007199254740999}, 3)},
		},
		{
			name: "int64s to floats", version: 2, source: runtime,
			attrs: []*ir.Attr{ints("keys_int64s", 1, 2), floats("values_floats", 0.5, 1.5), real1("default_float", 9)},
			in:    []*ir.Array{ir.ArrayOf([]int64{2, 1, 3}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1.5, 0.5, 9}, 3)},
		},
		{
			name: "floats to int64s", version: 2, source: runtime,
			attrs: []*ir.Attr{floats("keys_floats", 0.5, 1.5), ints("values_int64s", 1, 2)},
			in:    []*ir.Array{ir.ArrayOf([]float32{0.5, 1.5, 2}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]int64{1, 2, -1}, 3)},
		},
		{
			name: "floats to strings", version: 2, source: runtime,
			attrs: []*ir.Attr{floats("keys_floats", 0.5, 1.5), texts("values_strings", "x", "y")},
			in:    []*ir.Array{ir.ArrayOf([]float32{0.5, 1.5, 2}, 3)},
			want:  []*ir.Array{ir.TextOf([]string{"x", "y", "_Unused"}, 3)},
		},
		{
			name: "floats to floats", version: 2, source: runtime,
			attrs: []*ir.Attr{floats("keys_floats", 0.5, 1.5), floats("values_floats", 7, 8),
				real1("default_float", -1)},
			in:   []*ir.Array{ir.ArrayOf([]float32{0.5, 1.5, 2}, 3)},
			want: []*ir.Array{ir.ArrayOf([]float32{7, 8, -1}, 3)},
		},
		{
			name: "version 4, NaN", version: 4, source: runtime,
			attrs: []*ir.Attr{floats("keys_floats", nan32, 1), floats("values_floats", 7, 8),
				real1("default_float", -1)},
			in:   []*ir.Array{ir.ArrayOf([]float32{nan32, 1, 2}, 3)},
			want: []*ir.Array{ir.ArrayOf([]float32{7, 8, -1}, 3)},
		},
		{
			name: "version 4, double tensors", version: 4, source: runtime,
			arrays: map[string]*ir.Array{
				"keys_tensor":    ir.ArrayOf([]float64{0.1, nan64}, 2),
				"values_tensor":  ir.ArrayOf([]float64{0.3, 0.4}, 2),
				"default_tensor": ir.ArrayOf([]float64{0.5}, 1),
			},
			in:   []*ir.Array{ir.ArrayOf([]float64{0.1, 0.2, nan64}, 3)},
			want: []*ir.Array{ir.ArrayOf([]float64{0.3, 0.5, 0.4}, 3)},
		},
		{
			name: "version 4, int16 tensor of values", version: 4, source: runtime,
			attrs: []*ir.Attr{texts("keys_strings", "a", "b")},
			arrays: map[string]*ir.Array{"values_tensor": ir.ArrayOf([]int16{300, -2}, 2),
				"default_tensor": ir.ArrayOf([]int16{7}, 1)},
			in:   []*ir.Array{ir.TextOf([]string{"b", "a", "?"}, 3)},
			want: []*ir.Array{ir.ArrayOf([]int16{-2, 300, 7}, 3)},
		},
		{
			name: "version 1, strings", version: 1, source: runtime,
			attrs: []*ir.Attr{texts("classes_strings", "a", "b"), number1("default_int64", 5)},
			in:    []*ir.Array{ir.TextOf([]string{"b", "?"}, 2)}, want: []*ir.Array{ir.ArrayOf([]int64{1, 5}, 2)},
		},
		{
			name: "version 1, int64s", version: 1, source: runtime,
			attrs: []*ir.Attr{texts("classes_strings", "a", "b"), text("default_string", "none")},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 0, 5}, 3)},
			want:  []*ir.Array{ir.TextOf([]string{"b", "a", "none"}, 3)},
		},
	})
}

func TestOneHotEncoder(t *testing.T) {
	checkCases(t, "OneHotEncoder", []operatorCase{
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("cats_int64s", 1, 3), number1("zeros", 1)},
			in:    []*ir.Array{ir.ArrayOf([]float32{3, 1, 7}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 1, 0, 0, 0}, 3, 2)},
		},
		{
			name: "double", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("cats_int64s", 1, 3), number1("zeros", 1)},
			in:    []*ir.Array{ir.ArrayOf([]float64{3, 1, 7}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 1, 0, 0, 0}, 3, 2)},
		},
		{
			name: "int32", version: 1, source: reference,
			attrs: []*ir.Attr{ints("cats_int64s", 1, 3), number1("zeros", 1)},
			in:    []*ir.Array{ir.ArrayOf([]int32{3, 1, 7}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 1, 0, 0, 0}, 3, 2)},
		},
		{
			name: "int64", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("cats_int64s", 1, 3), number1("zeros", 1)},
			in:    []*ir.Array{ir.ArrayOf([]int64{3, 1, 7}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 1, 0, 0, 0}, 3, 2)},
		},
		{
			name: "matrix", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("cats_int64s", 1, 3)},
			in:    []*ir.Array{ir.ArrayOf([]int64{3, 1, 7, 3}, 2, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 1, 0, 0, 0, 0, 1}, 2, 2, 2)},
		},
		{
			name: "string", version: 1, source: runtime,
			attrs: []*ir.Attr{texts("cats_strings", "a", "b")},
			in:    []*ir.Array{ir.TextOf([]string{"b", "a", "?"}, 3)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 1, 0, 0, 0}, 3, 2)},
		},
		{
			name: "int64 above 2^53", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("cats_int64s", 9007199254740993, 9007199254740992)},
			in:    []*ir.Array{ir.ArrayOf([]int64{9007199254740992, 9007199254740993}, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{0, 1, 1, 0}, 2, 2)},
		},
		{
			name: "fractions are truncated", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("cats_int64s", 1, -1, -2)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1.5, -1.5}, 2)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 0, 0, 0, 1, 0}, 2, 3)},
		},
	})
}

func TestCategoryMapper(t *testing.T) {
	checkCases(t, "CategoryMapper", []operatorCase{
		{
			name: "strings", version: 1, source: runtime,
			attrs: []*ir.Attr{texts("cats_strings", "a", "b"), ints("cats_int64s", 5, 9),
				number1("default_int64", 9007199254740993)},
			in:   []*ir.Array{ir.TextOf([]string{"b", "?", "a"}, 3)},
			want: []*ir.Array{ir.ArrayOf([]int64{9, 9007199254740993, 5}, 3)},
		},
		{
			name: "int64s", version: 1, source: runtime,
			attrs: []*ir.Attr{texts("cats_strings", "a", "b"), ints("cats_int64s", 5, 9),
				text("default_string", "none")},
			in:   []*ir.Array{ir.ArrayOf([]int64{9, 5, 1}, 3, 1)},
			want: []*ir.Array{ir.TextOf([]string{"b", "a", "none"}, 3, 1)},
		},
	})
}
