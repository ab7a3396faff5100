package verify

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Only caches may have fewer heads in the second model. Other outputs of another size are compared, so that they
// are an error, and so are all where none would be left.
func TestOutputsOfFewerHeads(t *testing.T) {
	port := func(name string, shape ...int64) op.Port {
		t := &ir.Type{Elem: ir.Float}
		for _, n := range shape {
			t.Shape = append(t.Shape, ir.Dim{N: n})
		}
		return op.Port{Name: name, Type: t}
	}
	names := []string{"logits", "present"}
	for _, c := range []struct {
		want, got []op.Port
		compared  []string
	}{
		{[]op.Port{port("logits", 2, 8), port("present", 2, 4, 5, 6)},
			[]op.Port{port("logits", 2, 8), port("present", 2, 4, 5, 6)}, names},
		{[]op.Port{port("logits", 2, 8), port("present", 2, 4, 5, 6)},
			[]op.Port{port("logits", 2, 8), port("present", 2, 3, 5, 6)}, names[:1]},
		{[]op.Port{port("logits", 2, 8), port("present", 2, 4, 5, 6)},
			[]op.Port{port("logits", 2, 6), port("present", 2, 3, 5, 6)}, names[:1]},
		{[]op.Port{port("logits", 1, 2, 4, 8), port("present", 2, 4, 5, 6)},
			[]op.Port{port("logits", 1, 2, 3, 8), port("present", 2, 3, 5, 6)}, names},
	} {
		got, notes := fewerHeads(names, c.want, c.got)
		if !slices.Equal(got, c.compared) || (len(notes) > 0) != (len(got) < len(names)) {
			t.Errorf("%v are compared, want %v: %q", got, c.compared, notes)
		}
	}
}
