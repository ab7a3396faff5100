package tune

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// The sensitivity with shared activations is bit-identical to that of running the whole model.
func TestBaselineChangesNoSensitivity(t *testing.T) {
	for _, model := range []string{"cnn.onnx", "mlp.onnx", "opset7.onnx"} {
		o := options(t, 2)
		o.Input, o.Data = filepath.Join("..", "..", "fixtures", model), job.Data{Options: dataset.Options{}}
		o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 1}}
		tu, err := open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := tu.layers(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			for _, v := range l.variants {
				if got := alone(t, tu, l, v).sensitivity(false); got != v.sensitivity {
					t.Errorf("%s: %s of %v: %v alone, %v with the baseline", model, o.Candidates[v.candidate].Name, l.names, got,
						v.sensitivity)
				}
			}
		}
		if err := tu.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// alone is the output error of a variant without a baseline.
func alone(t *testing.T, tu *tuner, l *layer, v variant) *outputError {
	t.Helper()
	step, err := tu.Candidates[v.candidate].Step(only(l.weights(v.candidate)), Measuring, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tu.build(t.Context(), []pass.Options{step})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	m := &measurer{tuner: tu, baseline: &baseline{}}
	s, err := m.openOn(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := m.measure(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
