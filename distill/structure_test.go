package distill

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// TestPairs: hidden states are matched by depth in networks of units, by spatial size in convolutional networks, and
// uniformly in transformers.
func TestPairs(t *testing.T) {
	r := readFeatures(t)
	units := map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{2, features}}}
	tokens := map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{2, 4, 3}},
		"mask": {DType: ir.Float, Shape: []int64{2, 4}}}
	images := map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{2, 2, 6, 6}}}
	for _, c := range []struct {
		name             string
		student, teacher *ir.Model
		specs            map[string]ir.Spec
		want             []layerPair
	}{
		{"units", network(1, features, 16, 8, classes), network(2, features, 32, 24, classes), units,
			[]layerPair{{0, 0}, {1, 1}}},
		{"units of fewer layers", network(1, features, 16, classes), network(2, features, 32, 24, 16, classes), units,
			[]layerPair{{0, 2}}},
		{"one layer", network(1, features, classes), network(2, features, 32, classes), units, nil},
		{"images", convolutions(ir.Float, r.Small...), convolutions(ir.Float, r.Large...), images,
			[]layerPair{{0, 0}, {1, 1}, {2, 2}}},
		{"tokens", encoder(ir.Float, 2, r.Student...), encoder(ir.Float, 3, r.Teacher...), tokens,
			[]layerPair{{0, 0}, {1, 2}, {2, 4}}},
	} {
		got := structureIn(t, c.student, c.specs).pairs(structureIn(t, c.teacher, c.specs))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestUniform(t *testing.T) {
	for _, c := range []struct {
		k, n int
		want []int
	}{{3, 6, []int{0, 2, 4, 6}}, {4, 6, []int{0, 2, 3, 5, 6}}, {2, 3, []int{0, 2, 3}}, {6, 6, []int{0, 1, 2, 3, 4, 5, 6}},
		{3, 2, []int{0, 1, 1, 2}}} {
		for i, want := range c.want {
			if got := uniform(i, c.k, c.n); got != want {
				t.Errorf("layer %d of %d: %d of %d, want %d", i, c.k, got, c.n, want)
			}
		}
	}
}

// TestMatch: pairs of --match are compared by their kind, with a projection where widths differ; they need comparable
// shapes.
func TestMatch(t *testing.T) {
	r := readFeatures(t)
	tokens := map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{2, 4, 3}},
		"mask": {DType: ir.Float, Shape: []int64{2, 4}}}
	student, teacher := structureIn(t, encoder(ir.Float, 2, r.Student...), tokens),
		structureIn(t, encoder(ir.Float, 3, r.Teacher...), tokens)
	deep, shallow := teacher.hidden[4].Name, student.hidden[2].Name
	for _, c := range []struct{ match, kind, err string }{
		{deep + "=" + shallow, hints, ""},
		{"attention:" + deep + "=" + shallow, attention, ""},
		{"relations:" + deep + "=" + shallow, relations, ""},
		{deep, "", "must be teacher=student"},
		{"none=" + shallow, "", "must be values in the main graphs"},
		{deep + "=mask", "", "number of channels only"},
	} {
		fs, err := parse(t, "data", "none", "match", c.match).findFeatures(student, []*structure{teacher})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.match, err, c.err)
			}
		case err != nil || len(fs) != 1 || fs[0].kind != c.kind || (fs[0].projection != nil) != (c.kind == hints):
			t.Errorf("%s: got %+v, %v", c.match, fs, err)
		}
	}
}
