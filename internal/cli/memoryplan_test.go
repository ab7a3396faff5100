package cli

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report/memoryplan"
)

// shown is what people see of a run with so many steps, one of them with all bytes of the peak.
func shown(t *testing.T, steps, peak int, change func(*memoryplan.Plan)) string {
	t.Helper()
	r := &memoryplan.Run{Batch: 2, Total: 3 << 20, Arena: 2 << 20, Bound: 2 << 20, Peak: 1 << 20, AtStep: peak, AtNode: "node"}
	for i := range steps {
		s := memoryplan.Step{Node: "other", Bytes: 1 << 10}
		if i == peak {
			s = memoryplan.Step{Node: "node", Bytes: r.Peak}
		}
		r.Steps = append(r.Steps, s)
	}
	f := &memoryplan.Plan{Held: &memoryplan.Weights{Bytes: 1 << 20}, Workers: 2, Runs: []*memoryplan.Run{r}}
	change(f)
	var b strings.Builder
	if err := MemoryPlan(&b, Style{}, "m.onnx", f, 1); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func nothing(*memoryplan.Plan) {}

// Every step is in one of the lines, and the peak has the longest bar wherever it is.
func TestTheCurveHasThePeak(t *testing.T) {
	for _, steps := range []int{1, 2, 9, 10, 11, 99, 1000} {
		for _, peak := range []int{0, steps / 2, steps - 1} {
			got := shown(t, steps, peak, nothing)
			_, curve, _ := strings.Cut(got, "over time, batch 2\n")
			if n := strings.Count(curve, "\n"); n != min(steps, 10) {
				t.Errorf("%d lines for %d steps", n, steps)
			}
			if !strings.Contains(curve, strings.Repeat("█", barWidth)+"  1.0 MiB  node\n") {
				t.Errorf("peak at %d of %d is not in\n%s", peak, steps, curve)
			}
		}
	}
}

func TestBars(t *testing.T) {
	for fraction, want := range map[float64]string{0: "", 1: strings.Repeat("█", 40), 0.05: "██", 0.003125: "▏", 0.00625: "▎"} {
		if got := bar(fraction); got != want {
			t.Errorf("%g is %q, want %q", fraction, got, want)
		}
	}
}

func TestOnlyTheLargestBlocksAreListed(t *testing.T) {
	got := shown(t, 1, 0, func(f *memoryplan.Plan) {
		f.Runs[0].Live = []memoryplan.Block{
			{Name: "large", Kind: "activation", Type: "float[3]", Bytes: 3 << 18, From: "a", To: "b"},
			{Name: "small", Kind: "activation", Bytes: 1 << 17, From: "a", To: "b"},
			{Name: "node", Kind: "scratch", Bytes: 1 << 17, From: "node", To: "node"},
		}
	})
	for _, want := range []string{"large   768 KiB  75.0 %  float[3]  a → b\n", "2 more  256 KiB  25.0 %\n", "live at the peak, batch 2: 1.0 MiB of the arena at node, step 1 of 1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestUncountedNodesAreListed(t *testing.T) {
	got := shown(t, 1, 0, func(f *memoryplan.Plan) { f.Runs[0].Bound, f.Runs[0].Dynamic = 1<<20, []string{"a", "b"} })
	if want := "fragmentation of the arena 50.0 %; not counted: 2 nodes with data-dependent output sizes"; !strings.Contains(got, want) {
		t.Errorf("%q is not in\n%s", want, got)
	}
}

func TestBudgets(t *testing.T) {
	for want, b := range map[string]memoryplan.Budget{
		"  batch 7  2,000  bytes, within the budget\n  batch 8  2,300  bytes, above the budget\n": {Bytes: 2048, Batch: 7, Total: 2000, Next: 2300},
		"  batch 1  4,000  bytes, above the budget\n":                                             {Bytes: 2048, Total: 4000},
	} {
		got := shown(t, 1, 0, func(f *memoryplan.Plan) { f.Budget = &b })
		if !strings.Contains(got, "largest batch within 2,048 bytes\n"+want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	got := shown(t, 1, 0, func(f *memoryplan.Plan) {
		f.Fixed, f.Budget = true, &memoryplan.Budget{Bytes: 2048, Batch: 1, Total: 2000}
	})
	if !strings.Contains(got, "  fixed  2,000  bytes, within the budget\n") || strings.Contains(got, "batch 2") {
		t.Errorf("a batch of a model that declares it:\n%s", got)
	}
}

func TestMeasurementsThatDifferFromThePlan(t *testing.T) {
	got := shown(t, 1, 0, func(f *memoryplan.Plan) { f.Measured = &memoryplan.Measured{Batch: 2, Arena: 2 << 20, Peak: 1<<20 + 1} })
	for _, want := range []string{"arena    2,097,152  equal to the plan\n", "peak     1,048,577  plan: 1,048,576"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestLayoutChangesOfMemoryTraffic(t *testing.T) {
	l := memoryplan.Layout{Sensitive: 3, Nodes: 9, Saved: -3 << 10, Added: []memoryplan.Move{{Value: "a", Bytes: 1 << 10}, {Value: "b", Bytes: 2 << 10}}}
	got := shown(t, 1, 0, func(f *memoryplan.Plan) { f.Layout = &l })
	for _, want := range []string{"transposes to add       2   3.0 KiB  largest: b, 2.0 KiB\n", "memory traffic             +3.0 KiB\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	l.Saved = 5 << 10
	if got := shown(t, 1, 0, func(f *memoryplan.Plan) { f.Layout = &l }); !strings.Contains(got, "-5.0 KiB\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestLongNamesAreAbridged(t *testing.T) {
	long := "encoder/layer_11/attention/self/query/MatMul"
	if got := abridged(long); got != "encoder/laye…attention/self/query/MatMul" {
		t.Errorf("got %q", got)
	}
	if got := abridged("MatMul"); got != "MatMul" {
		t.Errorf("got %q", got)
	}
}
