package dataset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// labelsIn are the labels of samples in an archive for a model of three scores.
func labelsIn(t *testing.T, labels *ir.Array, o Options) (*Batch, error) {
	t.Helper()
	n := labels.Shape[0]
	path := npz(t, false, map[string]*ir.Array{"x": count[float32](n, 2), "labels": labels})
	s, err := Open(path, inputs(input("x", "float[n,2]")), inputs(input("y", "float[n,3]")), o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return all(t, s, Order{Size: int(n)})[0], nil
}

// Classes are integers, whole floats, and one-hot rows of any type, with or without an axis of one.
func TestFormsOfClasses(t *testing.T) {
	want := []int64{2, 0, 1, 0}
	for _, labels := range []*ir.Array{
		ir.ArrayOf([]int64{2, 0, 1, 0}, 4), ir.ArrayOf([]int32{2, 0, 1, 0}, 4, 1), ir.ArrayOf([]uint8{2, 0, 1, 0}, 4),
		ir.ArrayOf([]float32{2, 0, 1, 0}, 4, 1),
		ir.ArrayOf([]float64{2, 0, 1, 0}, 4), ir.ArrayOf([]float32{0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0}, 4, 3),
		ir.ArrayOf([]uint8{0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0}, 4, 3),
		ir.ArrayOf([]int64{0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0}, 4, 3),
	} {
		b, err := labelsIn(t, labels, Options{})
		if err != nil || !slices.Equal(b.Classes(), want) {
			t.Errorf("%s: classes %v, want %v: %v", labels, b.Classes(), want, err)
		}
	}
}

// Other labels keep their numbers.
func TestLabelsThatAreNoClasses(t *testing.T) {
	for _, labels := range []*ir.Array{
		ir.ArrayOf([]float32{2, 0.5, 1, 0}, 4), ir.ArrayOf([]float32{0.5, 0.5, 0, 1, 0, 0}, 2, 3),
		ir.ArrayOf([]int64{1, 0, 1, 1, 0, 0}, 2, 3), ir.ArrayOf([]int64{0, 0, 0, 1, 0, 0}, 2, 3),
		ir.ArrayOf([]int64{0, 1, 1, 0}, 2, 2), // of tokens: the model has three scores
	} {
		b, err := labelsIn(t, labels, Options{})
		if err != nil || b.Labels.DType != labels.DType || string(b.Labels.Data) != string(labels.Data) ||
			b.Classes() != nil && len(labels.Shape) > 1 {
			t.Errorf("%s became %s: %v", labels, b.Labels, err)
		}
	}
	hot := ir.ArrayOf([]int64{0, 0, 1, 1, 0, 0}, 2, 3)
	if b, err := labelsIn(t, hot, Options{Verbatim: true}); err != nil || string(b.Labels.Data) != string(hot.Data) {
		t.Errorf("verbatim: %v", err)
	}
}

func TestMissingLabels(t *testing.T) {
	nan := func(at int) []float64 {
		x := make([]float64, 5)
		x[at] /= x[at]
		return x
	}
	for at := range 5 {
		_, err := labelsIn(t, ir.ArrayOf(nan(at), 5), Options{})
		requireError(t, err, "data.npz", fmt.Sprintf("label of sample %d is missing", at))
		for _, missing := range []string{"", " ", "nan", "NaN", "NA", "?"} {
			for _, twelve := range []bool{false, true} {
				var text strings.Builder
				text.WriteString("u,labels\n")
				for row := range 15 {
					label := fmt.Sprint(row % 12)
					if !twelve {
						label = string(rune('a' + row%3))
					}
					if row == at {
						label = missing
					}
					fmt.Fprintf(&text, "%d,%s\n", row, label)
				}
				path := file(t, "d.csv", []byte(text.String()))
				_, err := Open(path, inputs(input("x", "float[n,1]")), nil, Options{})
				if isWord := missing == "NA" || missing == "?"; isWord && !twelve {
					if err != nil {
						t.Errorf("a class %q: %v", missing, err)
					}
					continue
				}
				requireError(t, err, "d.csv: row", "label")
			}
		}
	}
}

// Words in an archive are classes, numbered as those of a CSV file; a metric of texts reads them.
func TestWordsInAnArchive(t *testing.T) {
	path := "testdata/numpy.npz" // U3: "", "1é" … as texts of 24 elements
	c, err := ClassNames(path, Options{Labels: "U3_little_c"})
	if err != nil || c == nil || len(c) != 0 {
		t.Errorf("classes %q of labels with several words: %v", c, err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.npy"), npy(count[float32](4, 2)))
	write(t, filepath.Join(dir, "labels.npy"), rawNPY("{'descr': '|S3', 'fortran_order': False, 'shape': (4,), }",
		[]byte("dogcatdogant")))
	in := inputs(input("x", "float[n,2]"))
	s := mustOpen(t, dir, in, nil, Options{})
	if got := all(t, s, Order{Size: 4})[0].Classes(); !slices.Equal(got, []int64{2, 1, 2, 0}) ||
		!slices.Equal(s.ClassNames(), []string{"ant", "cat", "dog"}) {
		t.Errorf("classes %v of %q", got, s.ClassNames())
	}
	if names, err := ClassNames(dir, Options{}); err != nil || !slices.Equal(names, []string{"ant", "cat", "dog"}) {
		t.Errorf("classes %q: %v", names, err)
	}
	if b := all(t, mustOpen(t, dir, in, nil, Options{Verbatim: true}), Order{Size: 4})[0]; !slices.Equal(b.Labels.Text,
		[]string{"dog", "cat", "dog", "ant"}) {
		t.Errorf("texts %v", b.Labels)
	}
}

// A limit draws as many samples of each class as there are, in the order of the data, whatever that order is.
func TestLimitDrawsEvenly(t *testing.T) {
	for _, tt := range []struct {
		classes []int64
		limit   int
		want    []int
	}{
		{[]int64{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, 6, []int{0, 1, 4, 5, 8, 9}},
		{[]int64{0, 1, 2, 0, 1, 2, 0, 1, 2}, 6, []int{0, 1, 2, 3, 4, 5}},
		{[]int64{0, 0, 0, 0, 0, 1}, 4, []int{0, 1, 2, 5}},
		{[]int64{0, 0, 1, 1, 2, 2, 3, 3}, 2, []int{0, 4}},
		{[]int64{-1, -1, 5, 5, 5}, 3, []int{2, 3, 4}},
		{[]int64{-1, -1, 5}, 2, []int{0, 2}},
	} {
		if got := drawEvenly(tt.classes, tt.limit); !slices.Equal(got, tt.want) {
			t.Errorf("%d of %v: %v, want %v", tt.limit, tt.classes, got, tt.want)
		}
	}
	labels := ir.ArrayOf(slices.Concat(make([]int64, 20), slices.Repeat([]int64{1}, 20)), 40)
	path := npz(t, false, map[string]*ir.Array{"x": count[float32](40, 2), "labels": labels})
	s := mustOpen(t, path, inputs(input("x", "float[n,2]")), nil, Options{Limit: 4})
	for _, o := range []Order{{Size: 3}, {Size: 3, Shuffle: true}, {Index: []int{0, 1, 2, 3}}} {
		sums := map[int64]int{}
		for _, b := range all(t, s, o) {
			for i, class := range b.Classes() {
				if first := ir.View[float32](b.Inputs["x"])[2*i]; (first >= 40) != (class == 1) {
					t.Errorf("sample %v has class %d", first, class)
				}
				sums[class]++
			}
		}
		if sums[0] != 2 || sums[1] != 2 {
			t.Errorf("%+v: samples by class: %v", o, sums)
		}
	}
}
