//go:build !noort

package ort_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Identity returns its input, for every type and every kind of value.
func TestValuesRoundTrip(t *testing.T) {
	floats := ir.ArrayOf([]float32{1, -2, 3.5}, 3, 1)
	for _, c := range []struct {
		typ string
		x   *ir.Array
	}{
		{"float[N,1]", floats},
		{"float", ir.ArrayOf([]float32{7})},
		{"float[2,N]", ir.NewArray(ir.Float, 2, 0)},
		{"string[N]", ir.TextOf([]string{"", "a\x00b", "größe"}, 3)},
		{"string[N]", ir.NewArray(ir.String, 0)},
		{"string", ir.TextOf([]string{"scalar"})},
		{"seq(float[N,M])", &ir.Array{Kind: ir.Sequence, Items: []*ir.Array{floats, ir.ArrayOf([]float32{9}, 1, 1)}}},
		{"seq(string[N])", &ir.Array{Kind: ir.Sequence, Items: []*ir.Array{ir.TextOf([]string{"x", "y"}, 2)}}},
		{"optional(float[N,1])", floats},
		{"optional(float[N,1])", &ir.Array{Kind: ir.None}},
	} {
		s := parsed(t, fmt.Sprintf("g (%s x) => (%s y) { y = Identity(x) }", c.typ, c.typ))
		got := runs(t, s, map[string]*ir.Array{"x": c.x})["y"]
		if diff := cmp.Diff(c.x, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", c.typ, diff)
		}
	}
}

// ONNX Runtime has no Identity of the packed types; a type that it accepts as input is supported as output.
func TestElementTypesRoundTrip(t *testing.T) {
	for dt := ir.Float; dt.Known(); dt++ {
		if dt == ir.String || dt.Bits() < 8 || dt == ir.Complex64 || dt == ir.Complex128 || dt == ir.Float8E8M0 {
			continue // strings: above; packed types: below; the others are not supported by ONNX Runtime
		}
		x := ir.NewArray(dt, 3)
		for i := range x.Data {
			x.Data[i] = byte(i % 2) // a bool, and a number of every type
		}
		s := parsed(t, fmt.Sprintf("g (%s[N] x) => (%s[N] y) { y = Identity(x) }", dt, dt))
		got := runs(t, s, map[string]*ir.Array{"x": x})["y"]
		if diff := cmp.Diff(x, got); diff != "" {
			t.Errorf("%s: %s", dt, diff)
		}
	}
}

// Elements are packed lowest bits first, as in ONNX's raw_data.
func TestPackedTypesInAndOut(t *testing.T) {
	for _, c := range []struct {
		dt   ir.DType
		data []byte
		want []float32
	}{
		{ir.Int4, []byte{0x81, 0x0f}, []float32{1, -8, -1}},
		{ir.Uint4, []byte{0x81, 0x0f}, []float32{1, 8, 15}},
		{ir.Int2, []byte{0b11_10_01}, []float32{1, -2, -1}},
		{ir.Uint2, []byte{0b11_10_01}, []float32{1, 2, 3}},
	} {
		packed := &ir.Array{DType: c.dt, Shape: []int64{3}, Data: c.data}
		unpack := parsed(t, fmt.Sprintf("g (%s[N] x) => (float[N] y) { y = Cast<to = 1>(x) }", c.dt))
		got := ir.View[float32](runs(t, unpack, map[string]*ir.Array{"x": packed})["y"])
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: unpacked to %v, want %v", c.dt, got, c.want)
		}
		pack := parsed(t, fmt.Sprintf("g (float[N] x) => (%s[N] y) { y = Cast<to = %d>(x) }", c.dt, c.dt))
		back := runs(t, pack, map[string]*ir.Array{"x": ir.ArrayOf(c.want, 3)})["y"]
		if diff := cmp.Diff(packed, back); diff != "" {
			t.Errorf("%s: %s", c.dt, diff)
		}
	}
}

func TestEmptySequence(t *testing.T) {
	s := parsed(t, `g () => (seq(float[N]) y) { y = SequenceEmpty() }`)
	if got := runs(t, s, nil)["y"]; got.Kind != ir.Sequence || len(got.Items) != 0 {
		t.Errorf("got %s", got)
	}
}

func TestMapsOut(t *testing.T) {
	for _, c := range []struct {
		attribute string
		keys      *ir.Array
	}{
		{`classlabels_int64s = [4, 9]`, ir.ArrayOf([]int64{4, 9}, 2)},
		{`classlabels_strings = ["no", "yes"]`, ir.TextOf([]string{"no", "yes"}, 2)},
	} {
		s := parsed(t, fmt.Sprintf(`g (float[N,2] x) => (seq(map(%s, float)) y) { y = ai.onnx.ml.ZipMap<%s>(x) }`,
			c.keys.DType, c.attribute))
		got := runs(t, s, map[string]*ir.Array{"x": ir.ArrayOf([]float32{1, 2, 3, 4}, 2, 2)})["y"]
		row := func(a, b float32) *ir.Array {
			return &ir.Array{Kind: ir.Map, Keys: c.keys, Items: []*ir.Array{ir.ArrayOf([]float32{a, b}, 2)}}
		}
		want := &ir.Array{Kind: ir.Sequence, Items: []*ir.Array{row(1, 2), row(3, 4)}}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", c.attribute, diff)
		}
	}
}

func TestMapsIn(t *testing.T) {
	s := parsed(t, `g (map(string, float) x) => (float[1,N] y) { y = ai.onnx.ml.DictVectorizer<string_vocabulary = `+
		`["yes", "other", "no"]>(x) }`)
	x := &ir.Array{Kind: ir.Map, Keys: ir.TextOf([]string{"no", "yes"}, 2),
		Items: []*ir.Array{ir.ArrayOf([]float32{3, 5}, 2)}}
	got := ir.View[float32](runs(t, s, map[string]*ir.Array{"x": x})["y"])
	if want := []float32{5, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Initializers among the graph's inputs are used unless they are fed.
func TestOverridableInitializers(t *testing.T) {
	s := parsed(t, `g (float[2] x, float[2] w = {10, 20}) => (float[2] y) { y = Add(x, w) }`)
	x := ir.ArrayOf([]float32{1, 2}, 2)
	for _, c := range []struct {
		in   map[string]*ir.Array
		want []float32
	}{
		{map[string]*ir.Array{"x": x}, []float32{11, 22}},
		{map[string]*ir.Array{"x": x, "w": x}, []float32{2, 4}},
	} {
		if got := ir.View[float32](runs(t, s, c.in)["y"]); !slices.Equal(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
}

func TestFetchByName(t *testing.T) {
	s := parsed(t, `g (float[N] x) => (float[N] y, float[N] z) { y = Neg(x) z = Abs(x) }`)
	in := map[string]*ir.Array{"x": ir.ArrayOf([]float32{-1}, 1)}
	for _, c := range []struct{ fetch, want []string }{
		{nil, []string{"y", "z"}},
		{[]string{"z"}, []string{"z"}},
		{[]string{"z", "y", "z"}, []string{"y", "z"}},
	} {
		if got := slices.Sorted(maps.Keys(runs(t, s, in, c.fetch...))); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.fetch, got, c.want)
		}
	}
}

func TestPortsHaveTheTypesOfTheModel(t *testing.T) {
	s := parsed(t, `g (float[N,3,M] x, seq(float[N]) s, int64[2] w = {0, 1}) => (float[N,3,M] y, float16 z, `+
		`seq(float[N]) u) { y = Neg(x) z = Constant<value = float16 {1}>() u = Identity(s) }`)
	dims := []ir.Dim{{N: -1, Param: "N"}, {N: 3}, {N: -1, Param: "M"}}
	wantIn := []op.Port{{Name: "x", Type: &ir.Type{Elem: ir.Float, Shape: dims}}, {Name: "s"}}
	wantOut := []op.Port{{Name: "y", Type: &ir.Type{Elem: ir.Float, Shape: dims}},
		{Name: "z", Type: &ir.Type{Elem: ir.Float16}}, {Name: "u"}}
	if diff := cmp.Diff(wantIn, s.Inputs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantOut, s.Outputs()); diff != "" {
		t.Error(diff)
	}
}
