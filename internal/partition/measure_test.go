package partition_test

import (
	"testing"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/partition"
)

// Every stage is run on the values of the stages before it; the slowest one bounds the pipeline.
func TestStagesAreMeasured(t *testing.T) {
	o := partition.Options{Stages: 3, By: "weights", Batch: 2}
	p := plan(t, fixture("mlp"), o)
	if p.Seconds != 0 {
		t.Fatal(p.Seconds)
	}
	if err := p.Measure(t.Context(), fixture("mlp"), o, 1, memory.Limits{}); err != nil {
		t.Fatal(err)
	}
	slowest := 0.
	for _, s := range p.Stages {
		if slowest = max(slowest, s.Seconds); s.Seconds <= 0 {
			t.Errorf("%+v", s)
		}
	}
	if p.Seconds != slowest {
		t.Errorf("the bound is %g, the slowest stage takes %g", p.Seconds, slowest)
	}
}
