package distill

import (
	"slices"
	"testing"
)

// Segments that were chosen by plans take no more memory than others do, and no segment is computed again for nothing.
func TestCutTakesTheLeast(t *testing.T) {
	units := slices.Concat([]int64{features}, slices.Repeat([]int64{64}, 12), []int64{256, 32, 256, 32, classes})
	base := []string{"data", samples(t, 300), "labels", "label", "batch", "128"}
	tr := ready(t, network(1, units...), append(base, "checkpoint", "auto")...)
	best, auto := tr.step.arena, *tr.layout
	for _, how := range []string{"none", "sqrt", "every=1", "every=2", "every=3", "every=5"} {
		p := auto
		p.checkpoint = how
		if st, err := tr.drawn(t.Context(), &p); err != nil || st.arena < best {
			t.Errorf("%s takes %d bytes, auto %d; %v", how, st.arena, best, err)
		}
	}
	for i := range auto.cuts {
		p := auto
		p.cuts = slices.Delete(slices.Clone(auto.cuts), i, i+1)
		if st, err := tr.drawn(t.Context(), &p); err != nil || st.arena <= best {
			t.Errorf("without segment %v it takes %d bytes, with it %d; %v", auto.cuts[i], st.arena, best, err)
		}
	}
}
