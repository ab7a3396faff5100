package memplan

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A Choice is one combination of memory savings.
type Choice struct {
	Name    string        `json:"name"`  // options, as on the command line
	Options []pass.Option `json:"-"`     // that differ from the given ones
	Batch   int           `json:"batch"` // the given batch size
	Arena   int64         `json:"arena"`
	Total   int64         `json:"total"`
	// of a sample, relative to that without memory savings: multiply-adds with recomputation
	Time    float64 `json:"predicted_time"`
	Fits    bool    `json:"fits"` // within the budget
	Largest int     `json:"largest_batch,omitempty"`
	AtMost  int64   `json:"largest_total,omitempty"` // of the largest batch, or of the smallest if none fits
	// the least predicted time of those that fit, of equal ones the least memory
	Cheapest bool      `json:"cheapest,omitempty"`
	Measured *Measured `json:"measured,omitempty"`

	Plan *distill.Plan `json:"-"` // of the given batch size
}

// Measured is the result of training steps in a process of its own.
type Measured struct {
	distill.Trial
	Resident int64 `json:"peak_resident_bytes"`
}

// savings are the options that save memory at the cost of time, with the values that turn them off.
var savings = []struct {
	name  string
	off   string
	value func(o *distill.FineTune) string
	reset func(o *distill.FineTune)
}{
	{
		"checkpoint", "none",
		func(o *distill.FineTune) string { return o.Checkpoint },
		func(o *distill.FineTune) { o.Checkpoint = "none" },
	},
	{
		"storage", "float32",
		func(o *distill.FineTune) string { return o.Storage },
		func(o *distill.FineTune) { o.Storage = "float32" },
	},
	{
		"offload", "none",
		func(o *distill.FineTune) string { return o.Offload },
		func(o *distill.FineTune) { o.Offload = "none" },
	},
	{
		"accumulate", "1",
		func(o *distill.FineTune) string { return fmt.Sprint(max(1, o.Accumulate)) },
		func(o *distill.FineTune) { o.Accumulate = 1 },
	},
}

// Choices plans all combinations of the given memory savings, from none to all of them. With a budget in bytes each has
// its largest batch size, and the cheapest one that fits is marked.
func (t *Trainer) Choices(ctx context.Context, budget int64) ([]*Choice, error) {
	var used []int
	for i, s := range savings {
		if v := s.value(&t.Train); v != "" && v != s.off {
			used = append(used, i)
		}
	}
	var all []*Choice
	// The bits of set are the savings that are on: none first, to which the times are relative, and all last.
	for set := range 1 << len(used) {
		c := &Choice{}
		train := t.With(func(o *distill.FineTune) {
			for k, i := range used {
				s := savings[i]
				if set>>k&1 == 1 {
					c.Name += fmt.Sprintf(" --%s %s", s.name, s.value(o))
					continue
				}
				c.Options = append(c.Options, pass.Option{Name: s.name, Value: s.off})
				s.reset(o)
			}
		})
		c.Name = strings.TrimSpace(c.Name)
		if err := train.choice(ctx, c, budget); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	mark(all)
	return all, nil
}

// choice plans the options of c.
func (t *Trainer) choice(ctx context.Context, c *Choice, budget int64) (err error) {
	if c.Plan, err = t.Plan(ctx, distill.PlanOptions{}); err != nil {
		return err
	}
	c.Batch, c.Arena, c.Total = c.Plan.Batch, c.Plan.Arena, c.Plan.Bytes
	if budget == 0 {
		return nil
	}
	c.Fits = c.Total <= budget
	c.Largest, c.AtMost, err = t.largest(ctx, c, budget)
	return err
}

// largest returns the largest batch size within the budget and its memory; 0 and that of the smallest batch if none
// fits. The memory of a model with a fixed batch size hardly depends on the number of micro-batches.
func (t *Trainer) largest(ctx context.Context, c *Choice, budget int64) (int, int64, error) {
	if c.Plan.Fixed {
		if c.Fits {
			return c.Batch, c.Total, nil
		}
		return 0, c.Total, nil
	}
	// Batches that the micro-batches divide evenly.
	unit := max(1, c.Plan.MicroBatches)
	n, bytes, err := memory.LargestBatch(budget, func(n int) (int64, error) {
		p, err := t.With(func(o *distill.FineTune) { o.Batch = n * unit }).Plan(ctx, distill.PlanOptions{Sizes: true})
		if err != nil {
			return 0, err
		}
		return p.Bytes, nil
	})
	return n * unit, bytes, err
}

// mark sets the predicted times, and the cheapest choice that fits.
func mark(all []*Choice) {
	var best *Choice
	for _, c := range all {
		c.Time = c.Plan.Work / all[0].Plan.Work
		if c.Fits && (best == nil || c.Time < best.Time || c.Time == best.Time && c.Total < best.Total) {
			best = c
		}
	}
	if best != nil {
		best.Cheapest = true
	}
}

// Compared returns the combinations of activation checkpointing and storage of activations in fewer bits: none, each,
// and both. Options that are not given are --checkpoint auto and --storage float16.
func (t *Trainer) Compared(ctx context.Context) ([]*Choice, error) {
	all := t.With(func(o *distill.FineTune) {
		if o.Checkpoint == "none" || o.Checkpoint == "" {
			o.Checkpoint = "auto"
		}
		if o.Storage == "float32" || o.Storage == "" {
			o.Storage = "float16"
		}
		o.Offload, o.Accumulate = "none", 1
	})
	choices, err := all.Choices(ctx, 0)
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"baseline", "activation checkpointing", all.Train.Storage + " storage", "both"} {
		choices[i].Name = name
		choices[i].Options = []pass.Option{
			{Name: "checkpoint", Value: all.Train.Checkpoint},
			{Name: "storage", Value: all.Train.Storage},
			{Name: "offload", Value: "none"},
			{Name: "accumulate", Value: "1"},
		}
		// By the bits of Choices: the first one is checkpointing, the second one storage.
		if i&1 == 0 {
			choices[i].Options[0].Value = "none"
		}
		if i&2 == 0 {
			choices[i].Options[1].Value = "float32"
		}
	}
	return choices, nil
}

// Trial trains for some steps and discards the result.
func (t *Trainer) Trial(ctx context.Context, steps int) (m *Measured, err error) {
	m = &Measured{}
	err = t.step(ctx, func(ctx context.Context, s *pass.Step, f distill.FineTune) error {
		r, err := distill.RunTrial(ctx, s, f, steps)
		if err == nil {
			m.Trial, m.Resident = *r, resident()
		}
		return err
	})
	return m, err
}

// resident is the peak resident memory of the process so far.
func resident() int64 { return report.Observe(0)().PeakResident }
