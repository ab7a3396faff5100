package memplan

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/report"
)

// Page is the memory of the last run for a report: persistent blocks, inputs and
// outputs included, below the arena.
func (f *Facts) Page(model string) *report.Memory {
	r := f.Runs[len(f.Runs)-1]
	m := &report.Memory{Model: model, Run: "inference", Plan: r.plan}
	if !f.Fixed {
		m.Run = fmt.Sprintf("inference, batch %d", r.Batch)
	}
	for _, s := range r.Steps {
		m.Steps = append(m.Steps, s.Node)
	}
	for _, w := range f.Held.specs {
		m.Held = append(m.Held, memory.Block{Name: w.Name, Kind: memory.Weight, Bytes: w.Bytes()})
	}
	for _, list := range []struct {
		what  string
		ports []Port
	}{{"input", r.Inputs}, {"output", r.Outputs}} {
		for _, p := range list.ports {
			m.Held = append(m.Held, memory.Block{Name: list.what + " " + p.Name, Kind: memory.Activation, Bytes: p.Bytes})
		}
	}
	return m
}
