package distill

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// A BudgetError is a memory budget that is too small. Nothing was trained.
type BudgetError struct {
	Budget   int64
	Smallest int64    // budget in bytes that suffices in such a process
	Hints    []string // other options that save memory
}

// Error has the smallest budget in the form of the option.
func (e *BudgetError) Error() string {
	smallest := fmt.Sprintf("%dMiB", e.Smallest>>20)
	ways := append([]string{"--memory-budget " + smallest}, e.Hints...)
	return fmt.Sprintf("--memory-budget %s: the process needs at least %s; use %s", humanize.IBytes(uint64(e.Budget)),
		smallest, strings.Join(ways, " or "))
}

// budgetError is the error of a budget that no layout fits into.
func (pl *planner) budgetError(given *layout) error {
	const grain = 1 << 20
	e := &BudgetError{Budget: int64(pl.settings.MemoryBudget), Smallest: (pl.smallest + grain - 1) / grain * grain}
	if given.batch > max(1, pl.loader.fixedBatch) {
		e.Hints = append(e.Hints, "a smaller --batch")
		if pl.settings.OnOOM != "halve" {
			e.Hints = append(e.Hints, "--on-oom halve")
		}
	}
	if pl.settings.Optimizer != "sgd" {
		e.Hints = append(e.Hints, "--optimizer sgd")
	}
	return e
}

// halves reports whether the batch size is halved if no layout fits.
func (pl *planner) halves(p *layout) bool {
	return pl.settings.OnOOM == "halve" && p.batch/2 > 0 &&
		(pl.loader.fixedBatch == 0 || p.batch/2%pl.loader.fixedBatch == 0)
}

// half returns a layout with half of the batch size.
func (pl *planner) half(p *layout) *layout {
	half := *p
	half.batch, half.microBatches = p.batch/2, 1
	if pl.loader.fixedBatch > 0 {
		half.microBatches = half.batch / pl.loader.fixedBatch
	}
	return &half
}
