package distill

import (
	"archive/zip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// outputsOf returns a graph with outputs of these names and types, such as logits float[batch,4].
func outputsOf(text ...string) *ir.Graph {
	g := ir.NewModel().Graph
	for _, t := range text {
		name, typ, _ := strings.Cut(t, " ")
		v := g.AddValue(name)
		elem, dims, ranked := strings.Cut(strings.TrimSuffix(typ, "]"), "[")
		v.Type = &ir.Type{Elem: map[string]ir.DType{"float": ir.Float, "int64": ir.Int64}[elem]}
		for _, d := range strings.Split(dims, ",") {
			var n int64
			if _, err := fmt.Sscan(d, &n); err != nil {
				v.Type.Shape = append(v.Type.Shape, ir.Dim{N: -1, Param: d})
			} else {
				v.Type.Shape = append(v.Type.Shape, ir.Dim{N: n})
			}
		}
		if !ranked {
			v.Type.Shape = nil
		}
		g.AddOutput(v)
	}
	return g
}

// Labels belong to the only output that has a score of each class for each of them, or to those of --scores.
func TestHeads(t *testing.T) {
	const two = "first float[n,4];second float[n,4]"
	for _, c := range []struct{ outputs, scores, labels, want string }{
		{"logits float[n,10]", "", "", "logits 1 -1"},
		{"logits float[n,10]", "", "1", "logits 1 -1"},
		{"logits float[n,10,1,1]", "", "", "logits 1 -1"},
		{"class int64[n];scores float[n,3]", "", "", "scores 1 -1"},
		{"logits float", "", "", "logits 1 -1"},
		{"tokens float[n,t,9]", "", "7", "tokens -1 -1"},
		{"tokens float[n,7,9]", "", "7", "tokens -1 -1"},
		{"planes float[n,9,7]", "", "7", "planes 1 -1"},
		{"masks float[n,5,32,48]", "", "32,48", "masks 1 -1"},
		{"masks float[n,32,48,5]", "", "32,48", "masks -1 -1"},
		{two, "second", "", "second 1 -1"},
		{two, "first,second", "", "first 1 -1, second 1 -1"},
		{two, "second,first", "2", "second 1 0, first 1 1"},
		{two, "", "", "may belong to several outputs, first float[n,4], second float[n,4]"},
		{two, "third", "", `unknown output "third"; the outputs are first`},
		{"value float[n,1]", "", "", "no output has a score of each class"},
		{"tokens float[n,8,9]", "", "7", "no output has a score of each class"},
		{"map float[n,4,8,8]", "map", "", "scores map: the output has no score of each class"},
		{two, "first,second", "3", "scores first: the output has no score"},
	} {
		var labels []int64
		var sizes pass.List
		sizes.Set(c.labels)
		for _, d := range sizes {
			var n int64
			fmt.Sscan(d, &n)
			labels = append(labels, n)
		}
		s := &settings{}
		s.Scores.Set(c.scores)
		hs, err := s.heads(outputsOf(strings.Split(c.outputs, ";")...), labels)
		var got []string
		for _, h := range hs {
			got = append(got, fmt.Sprint(h.output, " ", h.axis, " ", h.column))
		}
		if text := strings.Join(got, ", "); err == nil && text != c.want || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s --scores %q, labels [%s]: %s, %v, want %s", c.outputs, c.scores, c.labels, text, err, c.want)
		}
	}
}

// Outputs of student and teacher are pairs by their names; a pair whose shapes differ is an error, and not trained on.
func TestPairedOutputs(t *testing.T) {
	for _, c := range []struct{ student, teacher, want string }{
		{"start float[n,4];end float[n,4]", "end float[n,4];start float[n,4]", "start end"},
		{"a float[n,4];b float[n,2]", "c float[n,4];d float[n,2]", "c d"},
		{"logits float[n,4]", "hidden float[n,64];logits float[n,4]", "logits"},
		{"a float[n,4]", "b float[n,4];c float[n,4]", "the teacher has no output for a float[n,4]"},
		{"a float[n,4];b float[n,2]", "c float[n,2];d float[n,4]",
			"output a float[n,4] of the student cannot be compared with c float[n,2]"},
		{"a float[n,4]", "a float[n,5]", "cannot be compared"},
	} {
		ys, err := pairOutputs(outputsOf(strings.Split(c.student, ";")...).Outputs,
			outputsOf(strings.Split(c.teacher, ";")...).Outputs)
		if text := strings.Join(namesOf(ys), " "); err == nil && text != c.want || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %s, %v, want %s", c.student, c.teacher, text, err, c.want)
		}
	}
}

// Several heads are trained together, each on a label of its own, and agreement is that of all.
func TestSeveralHeads(t *testing.T) {
	const n, width, classes = 240, 5, 3
	r := rand.New(rand.NewPCG(1, 1))
	m := network(1, width, 16, classes)
	g := m.Graph
	hidden := g.Outputs[0].Producer().Input(0)
	y := g.Insert(nil, "Gemm", []*ir.Value{hidden, g.AddConst("second", random(r, 16, classes))})
	y.Type = g.Outputs[0].Type
	g.AddOutput(y)
	x, labels := make([]float32, n*width), make([]int64, 2*n)
	for i := range n {
		row := x[i*width:][:width]
		for k := range row {
			row[k] = float32(r.NormFloat64())
		}
		labels[2*i], labels[2*i+1] = int64(slices.Index(row, slices.Max(row[:classes]))),
			int64(slices.Index(row, slices.Min(row[:classes])))
	}
	path := filepath.Join(t.TempDir(), "two.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	npy(t, z, "x", "<f4", ir.ArrayOf(x, n, width))
	npy(t, z, "labels", "<i8", ir.ArrayOf(labels, n, 2))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	res, err := tune(t, m, 1, "data", path, "scores", g.Outputs[0].Name+","+g.Outputs[1].Name, "epochs", "30", "batch",
		"16", "lr", "0.02")
	if err != nil {
		t.Fatal(err)
	}
	acc := res.Trainings[0].ValidationAccuracy
	if last := acc[len(acc)-1].Y; last < 0.9 {
		t.Errorf("agreement of both heads with their labels is %v", last)
	}
}

// Labels that no class has, that are all none, and --scores that name no output or one twice are errors, whatever the
// loss; a label is named by its sample.
func TestLabelsThatTrainNothing(t *testing.T) {
	const n = 64
	none, one, from1 := slices.Repeat([]int64{dataset.NoLabel}, n), make([]int64, n), make([]int64, n)
	for i := range n {
		from1[i] = int64(1 + i%(classes-1))
	}
	one[37], from1[37] = -1, classes
	for _, c := range []struct {
		labels []int64
		want   string
		o      []string
	}{
		{one, "label -1 of sample 37 is out of range", []string{"validate", "0"}},
		{from1, "label 3 of sample 37 is out of range: the classes of output", nil},
		{none, "samples of the validation set have no label that counts", nil},
		{none, "the samples of 4 steps have no label that counts", []string{"validate", "0"}},
		{none, "the samples of 4 steps have no label that counts", []string{"validate", "0", "accumulate", "4"}},
		{one, "scores: unknown output \"z\"", []string{"scores", "z", "loss", "kl", "alpha", "0"}},
		{one, "is named twice", []string{"scores", "v4,v4"}},
	} {
		m := network(1, features, 16, classes)
		m.Graph.Outputs[0].Name = "v4"
		_, err := tune(t, m, 1, append([]string{"data", labelled(t, c.labels), "epochs", "1", "batch", "16", "lr", "0.01"},
			c.o...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.o, err, c.want)
		}
	}
}

// labelled writes samples with these labels.
func labelled(t *testing.T, labels []int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "labelled.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, n := zip.NewWriter(f), int64(len(labels))
	npy(t, z, "x", "<f4", ir.ArrayOf(make([]float32, n*features), n, features))
	npy(t, z, "labels", "<i8", ir.ArrayOf(labels, n))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Without data the memory of training is planned for the first output of floats, also where the class itself comes
// first, and for those of --scores.
func TestPlanOfModelsWhoseFirstOutputIsNoScore(t *testing.T) {
	build := func(classFirst bool) *ir.Model {
		m := network(1, features, 16, classes)
		y := m.Graph.Outputs[0]
		class := m.Graph.Insert(nil, "ArgMax", []*ir.Value{y}, ir.IntAttr("axis", -1))
		class.Type = &ir.Type{Elem: ir.Int64, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: 1}}}
		if m.Graph.SetOutputs(y, class); classFirst {
			m.Graph.SetOutputs(class, y)
		}
		return m
	}
	want, err := planOf(t, build(false), nil)
	if err != nil {
		t.Fatal(err)
	}
	scores := build(true)
	for _, o := range [][]string{nil, {"scores", scores.Graph.Outputs[1].Name}, {"loss", "cross-entropy"}} {
		if got, err := planOf(t, build(true), o); err != nil || got.Arena != want.Arena {
			t.Errorf("%v: %+v, want an arena of %d bytes: %v", o, got, want.Arena, err)
		}
	}
	o := []string{"loss", "cross-entropy", "scores", scores.Graph.Outputs[0].Name}
	if _, err := planOf(t, scores, o); err == nil || !strings.Contains(err.Error(), "no score of each class") {
		t.Errorf("classes as scores: %v", err)
	}
}

// A plan of cross-entropy without data is possible for scores of tokens and of pixels.
func TestPlanOfScoresOfTokens(t *testing.T) {
	for _, dims := range [][]ir.Dim{{{N: 2}, {N: -1, Param: "tokens"}, {N: classes}},
		{{N: 2}, {N: classes}, {N: -1}, {N: 8}}} {
		y := &ir.Value{Name: "y", Type: &ir.Type{Elem: ir.Float, Shape: dims}}
		h, ok := headOf(y, fitting(y), -1)
		if axis := int64(map[int]int{3: -1, 4: 1}[len(dims)]); !ok || h.axis != axis {
			t.Errorf("%v: %+v, %v", dims, h, ok)
		}
	}
}
