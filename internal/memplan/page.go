package memplan

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// Page is the memory of the last run for a report: persistent blocks, inputs and
// outputs included, below the arena.
func (planned *Planned) Page(model string) *report.Memory {
	r := planned.last
	m := &report.Memory{Model: model, Run: "inference", Plan: r.buffers}
	if !planned.Fixed {
		m.Run = fmt.Sprintf("inference, batch %d", r.Batch)
	}
	for _, s := range r.Steps {
		m.Steps = append(m.Steps, s.Node)
	}
	for _, w := range planned.constants {
		m.Held = append(m.Held, memory.Block{Name: w.Name, Kind: memory.Weight, Bytes: w.Bytes()})
	}
	for _, list := range []struct {
		what  string
		ports []memoryplan.Port
	}{{"input", r.Inputs}, {"output", r.Outputs}} {
		for _, p := range list.ports {
			m.Held = append(m.Held, memory.Block{Name: list.what + " " + p.Name, Kind: memory.Activation, Bytes: p.Bytes})
		}
	}
	return m
}
