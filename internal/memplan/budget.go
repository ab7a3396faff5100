package memplan

import (
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// largest plans a number of batches logarithmic in the result. A model with a static batch
// has one.
func (p *planner) largest(budget int64) (*memoryplan.Budget, error) {
	total := func(batch int) (int64, error) {
		r, err := p.planRun(int64(batch))
		if err != nil {
			return 0, p.withBatch(int64(batch), err)
		}
		return r.Total, nil
	}
	b := &memoryplan.Budget{Bytes: budget}
	var err error
	if p.fixed {
		if b.Total, err = total(1); err == nil && b.Total <= budget {
			b.Batch = 1
		}
		return b, err
	}
	batch, size, err := memory.LargestBatch(budget, total)
	if err != nil {
		return nil, err
	}
	b.Batch, b.Total = int64(batch), size
	// What the next batch would need shows how far the budget is from it.
	if batch > 0 {
		b.Next, err = total(batch + 1)
	}
	return b, err
}
