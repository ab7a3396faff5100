package main

import (
	"fmt"
	"slices"
)

// factor is the smallest change of speed or memory that is a regression: single measurements differ by less on a busy
// machine.
const factor = 2

// regressions describes the measured cells that are worse than the committed ones.
func regressions(committed, measured *matrix) []string {
	var found []string
	for _, v := range variants() {
		for _, m := range slices.Concat(models(), largeModels("")) {
			before, now := committed.find(v.Name, m.Name), measured.find(v.Name, m.Name)
			if before == nil || now == nil {
				continue
			}
			for _, r := range runtimes() {
				if text := regression(v, before.Cells[r.Name], now.Cells[r.Name]); text != "" {
					found = append(found, fmt.Sprintf("regression: %s, %s in %s: %s", m.Name, v.Name, r.Name, text))
				}
			}
		}
	}
	return found
}

// regression describes in which respect a cell is worse than before; it is empty if it is not.
func regression(v variant, before, now *cell) string {
	switch {
	case before == nil || now == nil || v.saturated(before, now):
		return ""
	case now.rank() < before.rank():
		return fmt.Sprintf("%s, was %s: %s", now.State, before.State, now.Error)
	case now.Speed > 0 && now.Speed*factor <= before.Speed:
		return fmt.Sprintf("speed %.2f×, was %.2f×", now.Speed, before.Speed)
	case before.Memory > 0 && now.Memory >= factor*before.Memory:
		return fmt.Sprintf("%d bytes of memory, was %d", now.Memory, before.Memory)
	}
	return ""
}
