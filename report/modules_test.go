package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

// encoder is the weights of a transformer with that many layers.
func encoder(layers int) []Weight {
	weight := func(module string, bytes int64, sqnr float64) Weight {
		return Weight{Tensor: module + ".weight", Module: module, Bytes: Change{4 * bytes, bytes},
			Figures: Figures{Error: &Error{SQNR: &sqnr}}}
	}
	ws := []Weight{weight("embeddings.word", 100, 40)}
	for i := range layers {
		layer := fmt.Sprintf("encoder.layer.%d", i)
		ws = append(ws, weight(layer+".attention.query", 10, 30), weight(layer+".output.dense", 20, 20-float64(i)))
	}
	return append(ws, weight("pooler", 10, 35), Weight{Tensor: "c", Bytes: Change{4, 4}})
}

func TestModulesAreOnALevelWithAtLeastTen(t *testing.T) {
	for layers, want := range map[int]string{
		8: "embeddings.word encoder.layer.0 encoder.layer.1 encoder.layer.2 encoder.layer.3 encoder.layer.4 " +
			"encoder.layer.5 encoder.layer.6 encoder.layer.7 pooler (no module)",
		2: "embeddings.word encoder.layer.0.attention.query encoder.layer.0.output.dense encoder.layer.1.attention.query " +
			"encoder.layer.1.output.dense pooler (no module)",
	} {
		var got []string
		for _, m := range modules(encoder(layers)) {
			got = append(got, m.Name())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d layers: %v", layers, got)
		}
	}
}

func TestModulesSumUpWeights(t *testing.T) {
	m := modules(encoder(8))[3]
	if m.Path != "encoder.layer.2" || m.Weights != 2 || m.Bytes != (Change{120, 30}) || m.Ratio != 4 ||
		m.Worst != "encoder.layer.2.output.dense.weight" || *m.Error.SQNR != 18 {
		t.Errorf("%+v", m)
	}
}

func TestFewModulesAreNotListed(t *testing.T) {
	outside := Weight{Tensor: "large", Bytes: Change{1 << 20, 1}}
	for name, ws := range map[string][]Weight{"none": {outside}, "one": encoder(0)[:1],
		"most bytes outside": append(encoder(8), outside)} {
		if ms := modules(ws); ms != nil {
			t.Errorf("%s: %+v", name, ms)
		}
	}
}

func TestModulesKeepTheSchema(t *testing.T) {
	r := (&job{model: many(), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).build(t)
	if len(r.Modules) < minModules {
		t.Errorf("%d modules", len(r.Modules))
	}
	valid(t, r)
}
