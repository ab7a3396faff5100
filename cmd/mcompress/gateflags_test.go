package main

import (
	"testing"

	"github.com/mcompress/mcompress/report"
)

// Every gate has a flag, and every flag is a gate.
func TestGateFlags(t *testing.T) {
	names := map[string]bool{}
	for _, g := range gateFlags {
		names[g.name] = true
	}
	for _, name := range report.GateNames() {
		if !names[name] {
			t.Errorf("gate %s has no flag", name)
		}
		delete(names, name)
	}
	if len(names) > 0 {
		t.Errorf("no gates: %v", names)
	}
}
