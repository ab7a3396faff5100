package weightcache

import (
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
)

// Sessions share packed weights only if they have the same: of one model, with options that do not change what is
// packed.
func TestKeys(t *testing.T) {
	limited := func(weights int64) engine.Options { return engine.Options{Limits: memory.Limits{Weights: weights}} }
	base := engine.Options{}
	keys := map[string]string{keyOf("sum", 1000, base): "no options"}
	for name, key := range map[string]string{
		"another model":               keyOf("mus", 1000, base),
		"no fusion":                   keyOf("sum", 1000, engine.Options{NoFusion: true}),
		"all values kept":             keyOf("sum", 1000, engine.Options{KeepAll: true}),
		"a value kept":                keyOf("sum", 1000, engine.Options{Keep: []string{"y"}}),
		"weights that are read again": keyOf("sum", 1000, limited(2000)),
		"at a lower limit":            keyOf("sum", 1000, limited(1500)),
		"at four times the model":     keyOf("sum", 1000, limited(4000)),
	} {
		if other, ok := keys[key]; ok {
			t.Errorf("%s has the weights of %s", name, other)
		}
		keys[key] = name
	}
	if keyOf("sum", 1000, limited(4001)) != keyOf("sum", 1000, limited(1<<40)) {
		t.Error("limits that no weight of the model exceeds have weights of their own")
	}
	if keyOf("sum", 1000, engine.Options{Workers: 1}) != keyOf("sum", 1000, engine.Options{Workers: 8}) {
		t.Error("numbers of workers have weights of their own")
	}
}
