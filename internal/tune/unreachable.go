package tune

import (
	"fmt"
	"strings"
)

// Unreachable is the error of a search for what no combination reaches. It is nothing against the model.
type Unreachable struct{ Why string }

// Error says what was nearest.
func (u *Unreachable) Error() string { return u.Why }

// nearest says what the last trial that did not hold came to: of those it does the least damage.
func (t *tuner) nearest() string {
	var missed []string
	for _, g := range t.missed {
		if !g.Held {
			value, relation, bound := g.Shown()
			missed = append(missed, fmt.Sprintf("%s %s %s: it comes to %s", g.Name, relation, bound, value))
		}
	}
	if missed == nil {
		missed = []string{accuracyGate + " with two standard errors to spare"}
	}
	return "no smaller file holds the gates; that of least damage misses " + strings.Join(missed, "; ")
}
