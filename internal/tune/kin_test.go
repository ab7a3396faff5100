package tune

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/dataset"
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
	b, err := tu.build(t.Context(), []pass.Step{step})
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

// Only what does at least the damage of a failed choice to every layer is without hope.
func TestHopeless(t *testing.T) {
	layers := []*layer{
		{variants: []variant{{0, 10, 1}, {1, 5, 2}}},
		{variants: []variant{{0, 10, 1}, {1, 5, 2}}},
	}
	tu := &tuner{failed: []choice{{1, none}}}
	for _, c := range []struct {
		choice choice
		want   bool
	}{
		{choice{1, none}, true}, {choice{1, 0}, true}, {choice{1, 1}, true},
		{choice{0, 1}, false}, {choice{none, 1}, false}, {choice{0, none}, false},
	} {
		if got := tu.hopeless(layers, c.choice); got != c.want {
			t.Errorf("%v: %v, want %v", c.choice, got, c.want)
		}
	}
}
