package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestArrayFeatureExtractor(t *testing.T) {
	checkCases(t, "ArrayFeatureExtractor", []operatorCase{
		{
			name: "float", version: 1, source: runtime,
			in:   []*ir.Array{ir.ArrayOf([]float32{0, 1, 2, 3, 4, 5}, 2, 3), ir.ArrayOf([]int64{2, 0}, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{2, 0, 5, 3}, 2, 2)},
		},
		{
			name: "double", version: 1, source: runtime,
			in:   []*ir.Array{ir.ArrayOf([]float64{0, 1, 2, 3, 4, 5}, 2, 3), ir.ArrayOf([]int64{2, 0}, 2)},
			want: []*ir.Array{ir.ArrayOf([]float64{2, 0, 5, 3}, 2, 2)},
		},
		{
			name: "int32", version: 1, source: runtime,
			in:   []*ir.Array{ir.ArrayOf([]int32{0, 1, 2, 3, 4, 5}, 2, 3), ir.ArrayOf([]int64{2, 0}, 2)},
			want: []*ir.Array{ir.ArrayOf([]int32{2, 0, 5, 3}, 2, 2)},
		},
		{
			name: "int64", version: 1, source: runtime,
			in:   []*ir.Array{ir.ArrayOf([]int64{0, 1, 2, 3, 4, 5}, 2, 3), ir.ArrayOf([]int64{2, 0}, 2)},
			want: []*ir.Array{ir.ArrayOf([]int64{2, 0, 5, 3}, 2, 2)},
		},
		{
			name: "string", version: 1, source: runtime,
			in:   []*ir.Array{ir.TextOf([]string{"a", "b", "c", "d"}, 2, 2), ir.ArrayOf([]int64{1}, 1)},
			want: []*ir.Array{ir.TextOf([]string{"b", "d"}, 2, 1)},
		},
		{
			name: "vector", version: 1, source: runtime,
			in:   []*ir.Array{ir.ArrayOf([]float32{5, 6, 7}, 3), ir.ArrayOf([]int64{2, 2, 0}, 3)},
			want: []*ir.Array{ir.ArrayOf([]float32{7, 7, 5}, 1, 3)},
		},
		{
			name: "rank 3", version: 1, source: runtime,
			in:   []*ir.Array{ir.ArrayOf([]float32{0, 1, 2, 3, 4, 5, 6, 7}, 2, 2, 2), ir.ArrayOf([]int64{1}, 1, 1)},
			want: []*ir.Array{ir.ArrayOf([]float32{1, 3, 5, 7}, 2, 2, 1)},
		},
	})
}

func TestFeatureVectorizer(t *testing.T) {
	checkCases(t, "FeatureVectorizer", []operatorCase{
		{
			name: "float", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("inputdimensions", 2, 1)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, 3, 4}, 2, 2), ir.ArrayOf([]float32{5, 6}, 2, 1)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 2, 5, 3, 4, 6}, 2, 3)},
		},
		{
			name: "double", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("inputdimensions", 2, 1)},
			in:    []*ir.Array{ir.ArrayOf([]float64{1, 2, 3, 4}, 2, 2), ir.ArrayOf([]float64{5, 6}, 2, 1)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 2, 5, 3, 4, 6}, 2, 3)},
		},
		{
			name: "int32", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("inputdimensions", 2, 1)},
			in:    []*ir.Array{ir.ArrayOf([]int32{1, 2, 3, 4}, 2, 2), ir.ArrayOf([]int32{5, 6}, 2, 1)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 2, 5, 3, 4, 6}, 2, 3)},
		},
		{
			name: "int64", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("inputdimensions", 2, 1)},
			in:    []*ir.Array{ir.ArrayOf([]int64{1, 2, 3, 4}, 2, 2), ir.ArrayOf([]int64{5, 6}, 2, 1)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 2, 5, 3, 4, 6}, 2, 3)},
		},
		{
			name: "padded and truncated", version: 1, source: runtime,
			attrs: []*ir.Attr{ints("inputdimensions", 1, 3)},
			in:    []*ir.Array{ir.ArrayOf([]float32{1, 2, 3, 4}, 2, 2), ir.ArrayOf([]float32{5, 6}, 2, 1)},
			want:  []*ir.Array{ir.ArrayOf([]float32{1, 5, 0, 0, 3, 6, 0, 0}, 2, 4)},
		},
	})
}
