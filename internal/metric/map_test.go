package metric

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func scoreOf(t *testing.T, name string, b *Batch) Score {
	t.Helper()
	c, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Add(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	score, err := s.Score(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return score
}

// Without labels the detections of the source are the labels: the source has all of them, and another model the figure
// that it has with these as labels.
func TestMeanAPByTheDetectionsOfTheSource(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	const n = 12
	want, labels := boxes(r, n)
	got, _ := boxes(r, n)
	for i := range got {
		if got[i] = want[i]; i%6 < 4 {
			got[i] += r.Float64()
		}
	}
	detections := func(xs []float64) map[string]*ir.Array { return map[string]*ir.Array{"y": ir.ArrayOf(xs, n, 9, 6)} }
	var ofSource []float64
	for i := 0; i < len(want); i += 6 {
		class := want[i+5]
		if want[i+4] <= 0 {
			class = -1
		}
		ofSource = append(ofSource, append(append([]float64{}, want[i:i+4]...), class)...)
	}
	b := &Batch{Outputs: []string{"y"}, Want: detections(want), Got: detections(got), N: n}
	s := scoreOf(t, "map", b)
	if s.Name != "map:labels=source" || s.Before != 1 || !(s.After > 0.1 && s.After < 0.99) {
		t.Errorf("without labels: %+v", s)
	}
	b.Labels = ir.ArrayOf(ofSource, n, 9, 5)
	if l := scoreOf(t, "map", b); l.Name != "map" || l.After != s.After {
		t.Errorf("with the detections of the source as labels: %+v, without: %+v", l, s)
	}
	b.Labels = ir.ArrayOf(labels, n, 4, 5)
	if l := scoreOf(t, "map:labels=source", b); l != s {
		t.Errorf("with labels that do not count: %+v, without: %+v", l, s)
	}
}

// A model agrees with itself, also on boxes without area, on more than the detections that count, and whatever other
// outputs it has.
func TestAModelAgreesWithItself(t *testing.T) {
	many := make([]float32, 0, 130*6)
	for i := range 130 {
		x := float32(i)
		many = append(many, x, x, x-float32(i%3), x+2, 1/(1+x), 0)
	}
	b := &Batch{Outputs: []string{"y"}, Want: map[string]*ir.Array{"y": ir.ArrayOf(many, 1, 130, 6)}, N: 1}
	b.Got = b.Want
	for _, name := range []string{"map", "box-agreement"} {
		if s := scoreOf(t, name, b); s.Before != 1 || s.After != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The class of one box is that of the output of classes, not the number of boxes, which has one element, too.
func TestClassesOfOneBox(t *testing.T) {
	for _, names := range [][4]string{{"boxes", "scores", "classes", "count"}, {"1", "2", "3", "4"}} {
		side := func(class int64) map[string]*ir.Array {
			return map[string]*ir.Array{
				names[0]: ir.ArrayOf([]float32{0, 0, 4, 4}, 1, 4), names[1]: ir.ArrayOf([]float32{0.9}, 1),
				names[2]: ir.ArrayOf([]int64{class}, 1), names[3]: ir.ArrayOf([]int64{1}, 1),
			}
		}
		order := names[:]
		if names[0] == "boxes" { // the count is first
			order = []string{"count", "boxes", "scores", "classes"}
		}
		b := &Batch{Outputs: order, Want: side(0), Got: side(2), N: 1}
		if s := scoreOf(t, "box-agreement", b); s.Before != 1 || s.After != 0 {
			t.Errorf("%v: %+v", names, s)
		}
	}
}

// Two outputs of corners are read as such, if one of their boxes has a negative area.
func TestBoxesOfNegativeArea(t *testing.T) {
	right := []float32{50, 50, 90, 90, 60, 60, 95, 95, 70, 10, 95, 40}
	m, ok := MatchBoxes(ir.ArrayOf(right, 3, 4), ir.ArrayOf(append([]float32{30, 30, 29, 40}, right...), 4, 4))
	if !ok || m.Pairs != 3 || m.Overlap != 3 {
		t.Errorf("%+v, %v", m, ok)
	}
	centers := []float32{50, 50, 9, 9, 60, 60, 9, 9}
	if m, ok := MatchBoxes(ir.ArrayOf(centers, 2, 4), ir.ArrayOf([]float32{50, 50, 8, 9}, 1, 4)); !ok || m.Pairs != 1 ||
		m.Overlap < 0.85 || m.Overlap > 0.9 {
		t.Errorf("%+v, %v", m, ok)
	}
}
