package tune

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// What a model has in common with the source is taken from it, and the damage is that of running all of it, to the last bit.
func TestKinChangesNoDamage(t *testing.T) {
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
				if got := alone(t, tu, l, v).worth(false); got != v.damage {
					t.Errorf("%s: %s of %v: %v by itself, %v beside the source", model, o.Candidates[v.candidate].Name, l.names, got, v.damage)
				}
			}
		}
		if err := tu.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// alone is the damage of a variant when nothing is taken from the source.
func alone(t *testing.T, tu *tuner, l *layer, v variant) *damage {
	t.Helper()
	step, err := tu.Candidates[v.candidate].Step(only(l.taken(v.candidate)), Measuring, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tu.build(t.Context(), []pass.Options{step})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	d, err := tu.damaged(t.Context(), b, &kin{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
