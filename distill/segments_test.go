package distill

import (
	"slices"
	"testing"
)

// Checkpoint auto has the smallest arena of all modes, and each of its segments reduces the arena.
func TestChooseSegments(t *testing.T) {
	units := slices.Concat([]int64{features}, slices.Repeat([]int64{64}, 12), []int64{256, 32, 256, 32, classes})
	base := []string{"data", samples(t, 300), "labels", "label", "batch", "128"}
	tr := ready(t, network(1, units...), append(base, "checkpoint", "auto")...)
	pl := tr.planner()
	best, auto := tr.step.arena(), *tr.layout
	if len(auto.segments) == 0 {
		t.Fatal("no segments are chosen")
	}
	for _, mode := range []string{"none", "sqrt", "every=1", "every=2", "every=3", "every=5"} {
		p := auto
		p.checkpoint = mode
		if st, err := pl.planStep(t.Context(), &p); err != nil || st.arena() < best {
			t.Errorf("%s: arena of %d bytes, auto %d; %v", mode, st.arena(), best, err)
		}
	}
	for i := range auto.segments {
		p := auto
		p.segments = slices.Delete(slices.Clone(auto.segments), i, i+1)
		if st, err := pl.planStep(t.Context(), &p); err != nil || st.arena() <= best {
			t.Errorf("without segment %v: arena of %d bytes, with it %d; %v", auto.segments[i], st.arena(), best, err)
		}
	}
}
