package verify

import (
	"slices"
	"testing"
)

func TestOutputsOfRemovedLayersAreLeftOut(t *testing.T) {
	caches := []string{"logits", "present.0.key", "present.0.value", "present.1.key", "present.1.value", "present.10.key",
		"present.10.value"}
	for _, c := range []struct {
		name      string
		want, got []string
		compared  []string // nil for an error
		notes     []string
	}{
		{"all", caches, caches, caches, nil},
		{"fewer layers", caches, []string{"logits", "present.0.key", "present.0.value", "present.1.key", "present.1.value"},
			[]string{"logits"}, []string{
				"outputs present.*.key are not compared: the second model has 2 of 3",
				"outputs present.*.value are not compared: the second model has 2 of 3",
			}},
		{"a cache of a layer in between", caches, slices.DeleteFunc(slices.Clone(caches), func(s string) bool {
			return s == "present.1.key"
		}), nil, nil},
		{"the output without a number", caches, caches[1:], nil, nil},
		{"all outputs of a series", caches, caches[:1], nil, nil},
		{"two numbers", []string{"y", "block1.layer0", "block1.layer1"}, []string{"y", "block1.layer0"}, []string{"y"},
			[]string{"outputs block1.layer* are not compared: the second model has 1 of 2"}},
	} {
		compared, notes, err := commonOutputs(slices.Clone(c.want), c.got)
		if !slices.Equal(compared, c.compared) || !slices.Equal(notes, c.notes) || (err == nil) != (c.compared != nil) {
			t.Errorf("%s: got %q, %q, %v", c.name, compared, notes, err)
		}
	}
}
