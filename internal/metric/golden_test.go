package metric

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Metrics are those of scikit-learn, SciPy and pycocotools, which testdata/golden.py recorded.
func TestMetricsAreThoseOfLibraries(t *testing.T) {
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Metric          string
		Outputs, Labels any
		Value           float64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		choice, err := Parse(c.Metric)
		if err != nil {
			t.Fatal(err)
		}
		s, err := choice.New()
		if err != nil {
			t.Fatal(err)
		}
		outputs, labels := arrayOf(c.Outputs), arrayOf(c.Labels)
		if choice.Name != "map" {
			ids := make([]int64, labels.Elems())
			for k, x := range ir.View[float64](labels) {
				ids[k] = int64(x)
			}
			labels = ir.ArrayOf(ids, labels.Shape...)
		}
		if err := s.Add(t.Context(), &Batch{Outputs: []string{"y"}, Got: map[string]*ir.Array{"y": outputs}, Labels: labels,
			N: int(labels.Shape[0])}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Score(t.Context()); err != nil || !(math.Abs(got.After-c.Value) <= 1e-9) {
			t.Errorf("case %d, %s: got %v, %v, want %v", i, c.Metric, got.After, err, c.Value)
		}
	}
	if len(cases) < 10 {
		t.Errorf("%d cases", len(cases))
	}
}

// arrayOf is nested lists as doubles.
func arrayOf(value any) *ir.Array {
	var shape []int64
	for list, ok := value.([]any); ok; list, ok = list[0].([]any) {
		shape = append(shape, int64(len(list)))
	}
	var numbers []float64
	var add func(value any)
	add = func(value any) {
		switch value := value.(type) {
		case float64:
			numbers = append(numbers, value)
		case []any:
			for _, item := range value {
				add(item)
			}
		}
	}
	add(value)
	return ir.ArrayOf(numbers, shape...)
}
