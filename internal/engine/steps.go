package engine

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// stepBytes is the size of a step: one that reads and writes more counts several times, so that the limit of steps also
// bounds time.
const stepBytes = 128 << 10

// A MemoryError is a need for more memory than the limit.
type MemoryError = op.MemoryError

// A StepError is a run of more steps than the limit.
type StepError struct{ Limit int64 }

// Error names the limit.
func (e *StepError) Error() string {
	return fmt.Sprintf("the run exceeds the limit of %d steps", e.Limit)
}

// count counts one execution of a node.
func (r *execution) count(c *op.Call) error {
	bytes := int64(0)
	for _, a := range c.In {
		bytes += touched(a)
	}
	for _, a := range c.Out {
		bytes += touched(a)
	}
	return r.countSteps(1 + bytes/stepBytes)
}

// countSteps counts n steps.
func (r *execution) countSteps(n int64) error {
	if r.steps += n; r.maxSteps > 0 && r.steps > r.maxSteps {
		return &StepError{r.maxSteps}
	}
	return nil
}

// itemBytes is what an item of a sequence counts, whose memory is counted several times in each step: as much as is
// copied in that time.
const itemBytes = 1 << 10

// touched is a lower bound of the memory that a step on a accesses.
func touched(a *ir.Array) int64 {
	if a == nil {
		return 0
	}
	return int64(len(a.Data) + 16*len(a.Text) + itemBytes*len(a.Items))
}
