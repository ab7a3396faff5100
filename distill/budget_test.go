package distill

import (
	"runtime/debug"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// TestLimitOfThePlan: a process that does nothing else is limited to the plan until the training ends; other processes
// are not.
func TestLimitOfThePlan(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	for _, alone := range []bool{false, true} {
		e := ir.NewEval(t.TempDir())
		tr := newTrainer(small(), e, serial, parse(t, "data", samples(t, 64), "labels", "label"))
		tr.limit.exclusive = alone
		err := tr.prepare(t.Context(), nil)
		during := debug.SetMemoryLimit(-1)
		if limited := during < before; err != nil || limited != alone {
			t.Errorf("alone %v: limit of %d bytes, %v", alone, during, err)
		}
		tr.close()
		e.Close()
		if after := debug.SetMemoryLimit(-1); after != before {
			t.Errorf("alone %v: limit of %d bytes after the training, %d before", alone, after, before)
		}
	}
}
