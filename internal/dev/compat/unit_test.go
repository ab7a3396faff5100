package main

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

func floats(name string, v ...float32) conform.Array {
	a := conform.Array{Name: name, DType: "float32", Shape: []int{len(v)}}
	for _, x := range v {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(x))
	}
	return a
}

func TestSQNRIsThatOfTheWorstOutput(t *testing.T) {
	want := []conform.Array{floats("a", 3, 4), floats("b", 1, 0)}
	for _, c := range []struct {
		got  []conform.Array
		sqnr float64
		err  string
	}{
		{want, maxSQNR, ""},
		{[]conform.Array{floats("b", 1, 0), floats("a", 3, 4.5)}, 20, ""}, // matched by name
		{[]conform.Array{floats("x", 3, 4), floats("y", 1, 1)}, 0, ""},    // by position
		{[]conform.Array{floats("a", 3, float32(math.NaN())), want[1]}, -maxSQNR, ""},
		{[]conform.Array{floats("a", 3), want[1]}, 0, "shape [1], not [2]"},
		{want[:1], 0, "1 outputs, not 2"},
	} {
		d, err := sqnr(want, c.got)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil &&
			d != c.sqnr {
			t.Errorf("%v: %v dB, %v; want %v dB, %q", c.got, d, err, c.sqnr, c.err)
		}
	}
}

func TestRegressionsAreWorseStatesAndFactorsOfTwo(t *testing.T) {
	before := &cell{State: right, Speed: 1, Memory: 1000, Exact: true}
	saturating := variant{Saturates: true}
	for _, c := range []struct {
		variant variant
		now     cell
		want    string
	}{
		{variant{}, cell{State: right, Speed: 0.51, Memory: 1999}, ""},
		{variant{}, cell{State: right, Speed: 0.5, Memory: 1000}, "speed 0.50×"},
		{variant{}, cell{State: right, Speed: 1, Memory: 2000}, "2000 bytes"},
		{variant{}, cell{State: wrong, Speed: 1, Memory: 1000}, "wrong, was right"},
		{variant{}, cell{State: refused, Error: "no kernel"}, "does not load, was right: no kernel"},
		{saturating, cell{State: wrong}, ""},
		{saturating, cell{State: wrong, Exact: true}, "wrong, was right"},
		{saturating, cell{State: fails}, "does not run, was right"},
	} {
		if got := regression(c.variant, before, &c.now); (got == "") != (c.want == "") ||
			!strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.now, got, c.want)
		}
	}
	if got := regression(saturating, &cell{State: right}, &cell{State: wrong}); got == "" {
		t.Error("no regression of a file that was right on a CPU like this one")
	}
}

func TestMergeReplacesCellsOfOtherContentAndVersion(t *testing.T) {
	old := &matrix{Versions: map[string]string{newest: "1", "tract": "1"}, Files: []*file{
		{Variant: source, Model: "mlp", Digest: "a",
			Cells: map[string]*cell{newest: {State: right}, "tract": {State: right}}},
		{Variant: source, Model: "cnn", Digest: "a",
			Cells: map[string]*cell{newest: {State: right}, "tract": {State: right}}},
		{Variant: "gone", Model: "cnn", Digest: "a", Cells: map[string]*cell{}},
	}}
	old.merge(&matrix{Versions: map[string]string{newest: "2"}, Files: []*file{
		{Variant: source, Model: "mlp", Digest: "b", Cells: map[string]*cell{newest: {State: wrong}}},
	}})
	if mlp := old.find(source, "mlp"); len(mlp.Cells) != 1 || mlp.Cells[newest].State != wrong {
		t.Errorf("mlp: %v, want the new cell only", mlp.Cells)
	}
	if cnn := old.find(source, "cnn"); len(cnn.Cells) != 1 || cnn.Cells["tract"] == nil {
		t.Errorf("cnn: %v, want the cell of the runtime whose version is the same", cnn.Cells)
	}
	if old.find("gone", "cnn") != nil {
		t.Error("a variant that is not in the table is kept")
	}
}

func TestFilterKeepsAllOfAKindWithoutAName(t *testing.T) {
	name := func(r runtime) string { return r.Name }
	if got := filter(selection("tract,mlp"), runtimes(), name); len(got) != 1 || got[0].Name != "tract" {
		t.Errorf("tract: %v", got)
	}
	if got := filter(selection("mlp,l1, coo,tract"), variants(),
		func(v variant) string { return v.Name }); len(got) != 1 || got[0].Name != "l1, coo" {
		t.Errorf("%v", got)
	}
	if got := filter(selection("mlp"), runtimes(), name); len(got) != len(runtimes()) {
		t.Errorf("mlp: %v", got)
	}
}
