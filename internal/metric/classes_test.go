package metric

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Of equal largest scores the first counts, as in NumPy's argmax; NaN is never the largest.
func TestTop1(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		row  []float32
		want int64
	}{
		{[]float32{1, 3, 3, 2}, 1}, {[]float32{5, 5, 5, 5}, 0}, {[]float32{0, 1, 2, 2}, 2}, {[]float32{-1, -2, -1, -3}, 0},
		{[]float32{nan, 1, nan, 1}, 1}, {[]float32{nan, nan, nan, nan}, noClass},
	} {
		if got := Top1(ir.ArrayOf(c.row, 1, 4)); !slices.Equal(got, []int64{c.want}) {
			t.Errorf("%v: class %v, want %d", c.row, got, c.want)
		}
	}
}

func TestInvalidMetricsAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"bleu":                 "unknown metric \"bleu\"; metrics are top1, top5, f1, map,",
		"top1:k=3":             "\"k=3\" is not one of its options: it has none",
		"cer:blank":            "\"blank\" is not one of its options: blank=VALUE, charset=VALUE",
		"map:iou=2":            "iou=2: must be a number from 0.01 to 1",
		"f1:threshold=NaN":     "threshold=NaN: must be a number",
		"cer:charset=/no/file": "no such file",
		"cer:charset=/dev":     "not a regular file",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Outputs and labels that a metric does not measure are errors that name what it needs.
func TestInapplicableOutputsAndLabels(t *testing.T) {
	classes, numbers := ir.ArrayOf([]int64{0, 1}, 2), ir.ArrayOf([]float64{0, 1}, 2)
	scores, image := ir.ArrayOf(make([]float32, 6), 2, 3), ir.ArrayOf(make([]float32, 16), 2, 2, 2, 2)
	for _, c := range []struct {
		metric         string
		output, labels *ir.Array
		want           string
	}{
		{"top1", scores, nil, "the data has no labels"},
		{"top1", scores, numbers, "classes are integers"},
		{"top1", image, classes, "no output has classes or scores"},
		{"top1", scores, ir.ArrayOf([]int64{1, 3}, 2),
			"label 3 of sample 1 is not a class of output \"y\", which are 0 to 2"},
		{"f1", scores, ir.ArrayOf([]int64{1, 3}, 2), "label 3 of sample 1 is not a class"},
		{"top5", ir.ArrayOf([]int64{0, 1}, 2), classes, "classes, not scores"},
		{"map", scores, classes, "x1, y1, x2, y2, class"},
		{"map", scores, ir.ArrayOf(make([]float64, 10), 2, 1, 5), "no output has detections"},
		{"cer", image, classes, "no output has strings, classes or scores by time step"},
		{"cer", ir.ArrayOf(make([]float32, 12), 2, 3, 2), ir.TextOf([]string{"a", "b"}, 2), "cer:charset=FILE"},
		{"nearest-centroid", scores, ir.ArrayOf([]int64{0, 1, 0, 1}, 2, 2), "one class"},
		{"spearman", scores, ir.ArrayOf([]int64{0, 1, 0, 1}, 2, 2), "one number"},
		{"embedding-cosine", scores, nil, "it compares two models"},
		{"perplexity", scores, nil, "no token ids"},
	} {
		m, err := Parse(c.metric)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.New()
		if err != nil {
			t.Fatal(err)
		}
		err = s.Add(t.Context(), &Batch{Got: map[string]*ir.Array{"y": c.output}, Outputs: []string{"y"},
			Labels: c.labels, N: 2})
		var none *Inapplicable
		if !errors.As(err, &none) || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "metric "+c.metric+": ") {
			t.Errorf("%s: got %v, want %s", c.metric, err, c.want)
		}
	}
}

// Texts are compared by the characters of classes, of which the blank has no line.
func TestTextsAreDecodedByTheCharset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "characters.txt")
	if err := os.WriteFile(path, []byte("a\nb\né\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for blank, steps := range map[string][]int{"0": {1, 1, 0, 1, 3, 0, 2}, "3": {0, 3, 0, 0, 2, 2, 1}} {
		c, err := Parse("cer:blank=" + blank + ":charset=" + path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.New()
		if err != nil {
			t.Fatal(err)
		}
		scores := make([]float32, 4*len(steps))
		for at, class := range steps {
			scores[4*at+class] = 1
		}
		b := &Batch{Got: map[string]*ir.Array{"y": ir.ArrayOf(scores, 1, int64(len(steps)), 4)}, Outputs: []string{"y"},
			Labels: ir.TextOf([]string{"aébxy"}, 1), N: 1}
		if err := s.Add(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		// aaéb: one insertion, two deletions
		if got, err := s.Score(t.Context()); err != nil || math.Abs(got.After-3.0/5) > 1e-12 {
			t.Errorf("blank %s: got %v, %v", blank, got, err)
		}
	}
}

// Samples with a negative label neither count nor have a centroid: those here lie where one would be nearest.
func TestCentroidsIgnoreNegativeLabels(t *testing.T) {
	c := &centroids{labels: []int64{0, 0, 1, 1, -1, -1, -100, -100}}
	got := c.hits([][]float32{{1, 0}, {0.9, 0.1}, {0, 1}, {0.6, 0.5}, {1, 0}, {1, 0}, {0, 1}, {0, 1}})
	if want := []float64{1, 1, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("hits %v, want %v", got, want)
	}
}
