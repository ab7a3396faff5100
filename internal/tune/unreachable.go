package tune

import (
	"fmt"
	"strings"
)

// Unreachable is the error of a search whose goal no combination reaches. The model itself is valid.
type Unreachable struct{ Why string }

// Error describes the nearest result.
func (u *Unreachable) Error() string { return u.Why }

// nearest describes the last failed trial, the one of minimum sensitivity.
func (t *tuner) nearest() string {
	var missedGates []string
	for _, g := range t.missedGates {
		if !g.Held {
			value, relation, bound := g.Shown()
			missedGates = append(missedGates, fmt.Sprintf("%s %s %s: measured %s", g.Name, relation, bound, value))
		}
	}
	failed := ""
	if list := t.search.Failures(); len(list) > 0 {
		failed = fmt.Sprintf("; %d measurements failed and were left out, the first: %s", len(list), list[0])
	}
	if missedGates == nil {
		return "no smaller file holds the gates with a margin of two standard errors" + failed
	}
	return "no smaller file holds the gates; the one of minimum sensitivity misses " + strings.Join(missedGates,
		"; ") + failed
}
