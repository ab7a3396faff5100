package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func mapOf(keys, values *ir.Array) []*ir.Array {
	return []*ir.Array{{Kind: ir.Map, Keys: keys, Items: []*ir.Array{values}}}
}

func TestDictVectorizer(t *testing.T) {
	ab, letters := texts("string_vocabulary", "a", "c", "b"), ir.TextOf([]string{"b", "a"}, 2)
	numbers, sevens := ints("int64_vocabulary", 5, 7), ir.ArrayOf([]int64{7}, 1)
	checkCases(t, "DictVectorizer", []operatorCase{
		{
			name: "strings to int64s", version: 1, source: reference, attrs: []*ir.Attr{ab},
			in:   mapOf(letters, ir.ArrayOf([]int64{1<<53 + 1, 4}, 2)),
			want: []*ir.Array{ir.ArrayOf([]int64{4, 0, 1<<53 + 1}, 1, 3)},
		},
		{
			name: "strings to floats", version: 1, source: runtime, attrs: []*ir.Attr{ab},
			in:   mapOf(ir.TextOf([]string{"b"}, 1), ir.ArrayOf([]float32{1.5}, 1)),
			want: []*ir.Array{row(0, 0, 1.5)},
		},
		{
			name: "strings to doubles", version: 1, source: reference, attrs: []*ir.Attr{ab},
			in:   mapOf(letters, ir.ArrayOf([]float64{0.1, 0.2}, 2)),
			want: []*ir.Array{ir.ArrayOf([]float64{0.2, 0, 0.1}, 1, 3)},
		},
		{
			name: "int64s to strings", version: 1, source: reference, attrs: []*ir.Attr{numbers},
			in:   mapOf(sevens, ir.TextOf([]string{"x"}, 1)),
			want: []*ir.Array{ir.TextOf([]string{"", "x"}, 1, 2)},
		},
		{
			name: "int64s to floats", version: 1, source: runtime, attrs: []*ir.Attr{numbers},
			in:   mapOf(sevens, ir.ArrayOf([]float32{1.5}, 1)),
			want: []*ir.Array{row(0, 1.5)},
		},
		{
			name: "int64s to doubles", version: 1, source: reference, attrs: []*ir.Attr{numbers},
			in:   mapOf(sevens, ir.ArrayOf([]float64{1.5}, 1)),
			want: []*ir.Array{ir.ArrayOf([]float64{0, 1.5}, 1, 2)},
		},
	})
}

func TestCastMap(t *testing.T) {
	in := mapOf(ir.ArrayOf([]int64{4, 1, 2}, 3), ir.ArrayOf([]float32{1.5, -2.7, 3}, 3))
	sparse := []*ir.Attr{text("map_form", "SPARSE"), number1("max_map", 6)}
	checkCases(t, "CastMap", []operatorCase{
		{name: "dense floats", version: 1, source: runtime, in: in, want: []*ir.Array{row(-2.7, 3, 1.5)}},
		{name: "sparse floats", version: 1, source: runtime, attrs: sparse, in: in,
			want: []*ir.Array{row(0, -2.7, 3, 0, 1.5, 0)}},
		{
			name: "dense int64s", version: 1, source: runtime, attrs: []*ir.Attr{text("cast_to", "TO_INT64")}, in: in,
			want: []*ir.Array{ir.ArrayOf([]int64{-2, 3, 1}, 1, 3)},
		},
		{
			name: "sparse int64s", version: 1, source: runtime, attrs: with(sparse, text("cast_to", "TO_INT64")),
			in:   in,
			want: []*ir.Array{ir.ArrayOf([]int64{0, -2, 3, 0, 1, 0}, 1, 6)},
		},
	})
}

// The expected maps are those of ONNX Runtime 1.31.1.
func TestZipMap(t *testing.T) {
	for _, c := range []struct {
		labels *ir.Attr
		keys   *ir.Array
	}{
		{texts("classlabels_strings", "p", "q"), ir.TextOf([]string{"p", "q"}, 2)},
		{ints("classlabels_int64s", 4, 1), ir.ArrayOf([]int64{4, 1}, 2)},
	} {
		out, err := run("ZipMap", 1, []*ir.Attr{c.labels}, nil, ir.ArrayOf([]float32{1, 2, 3, 4}, 2, 2))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float32{{1, 2}, {3, 4}} {
			m := out[0].Items[i]
			if !equalArrays(m.Keys, c.keys) || !equalArrays(m.Items[0], ir.ArrayOf(want, 2)) {
				t.Errorf("%s: row %d is %v: %v, want %v", c.labels.Name, i, contents(m.Keys), contents(m.Items[0]),
					want)
			}
		}
	}
}

func TestMalformedMapsAreErrors(t *testing.T) {
	in := mapOf(ir.ArrayOf([]int64{7, 9}, 2), ir.ArrayOf([]float32{1, 2}, 2))
	for _, c := range []struct {
		typ   string
		attrs []*ir.Attr
		in    []*ir.Array
	}{
		{"DictVectorizer", nil, in},
		{"DictVectorizer", []*ir.Attr{ints("int64_vocabulary", 7)}, in}, // 9 is not in the vocabulary
		{"DictVectorizer", []*ir.Attr{texts("string_vocabulary", "a")}, in},
		{"DictVectorizer", []*ir.Attr{ints("int64_vocabulary", 7, 9)}, mapOf(ir.ArrayOf([]int64{7}, 1), row(1, 2))},
		{"CastMap", []*ir.Attr{text("cast_to", "TO_DOUBLE")}, in},
		{"CastMap", []*ir.Attr{text("map_form", "SPARSE"), number1("max_map", 9)}, in},
		{"CastMap", []*ir.Attr{text("map_form", "SPARSE"), number1("max_map", -1)}, in},
		{"CastMap", nil, mapOf(ir.TextOf([]string{"a"}, 1), ir.ArrayOf([]float32{1}, 1))},
		{"CastMap", nil, mapOf(ir.ArrayOf([]int64{1}, 1), ir.TextOf([]string{"x"}, 1))},
	} {
		if out, err := run(c.typ, 1, c.attrs, nil, c.in...); err == nil {
			t.Errorf("%s %v gives %v", c.typ, c.attrs, contents(out[0]))
		}
	}
}
