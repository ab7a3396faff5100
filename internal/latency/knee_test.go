package latency

import (
	"testing"

	"github.com/mcompress/mcompress/report/benchmark"
)

func TestKneeIsTheSmallestBatchNearTheBest(t *testing.T) {
	measure := func(model string, batch int64, rate float64) *benchmark.Measure {
		return &benchmark.Measure{Model: model, Backend: Embedded, Batch: batch, PerSec: rate}
	}
	all := []*benchmark.Measure{
		measure("a", 32, 990), measure("a", 1, 500), measure("a", 8, 949), measure("a", 16, 951),
		measure("a", 64, 1000),
		measure("b", 1, 10), measure("b", 2, 5), // larger batches are slower
		measure("c", 4, 100),
		measure("d", 1, 95), measure("d", 2, 100), // exactly 95 %
	}
	MarkKnees(all)
	want := map[string]int64{"a": 16, "b": 1, "d": 1}
	for _, m := range all {
		if m.Knee != (m.Batch == want[m.Model]) {
			t.Errorf("%s, batch %d: %v", m.Model, m.Batch, m.Knee)
		}
	}
	steps := []*benchmark.TrainingStep{{Batch: 4, PerSec: 96}, {Batch: 2, PerSec: 94}, {Batch: 8, PerSec: 100}}
	if MarkKnee(steps); !steps[0].Knee || steps[1].Knee || steps[2].Knee {
		t.Errorf("knee of training: %+v %+v %+v", *steps[0], *steps[1], *steps[2])
	}
	if MarkKnee(steps[1:2]); steps[1].Knee {
		t.Error("one batch size has a knee")
	}
}
