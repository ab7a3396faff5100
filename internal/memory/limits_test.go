package memory

import (
	"math"
	"testing"
)

// What is not given has a default, and a memory limit is at most what the process can get.
func TestLimitsAreResolved(t *testing.T) {
	if got := (Limits{}).Resolved(); got.Weights != 0 || got.Memory < 1 || got.Steps != DefaultSteps {
		t.Errorf("no limits: %+v", got)
	}
	if got := (Limits{Memory: 1000, Steps: 7}).Resolved(); got != (Limits{Weights: 500, Memory: 1000, Steps: 7}) {
		t.Errorf("a memory limit: %+v", got)
	}
	if got := (Limits{Weights: 3, Memory: math.MaxInt64}).Resolved(); got.Weights != 3 || got.Memory == math.MaxInt64 {
		t.Errorf("more than the machine has: %+v", got)
	}
}

// A limit that the user gave bounds the memory of a session, the default one its weights only; two sessions have half
// each.
func TestLimitsOfSessions(t *testing.T) {
	if got := LimitsOf(1000, false, 7); got != (Limits{Weights: 250, Steps: 7}) {
		t.Errorf("default: %+v", got)
	}
	given := LimitsOf(1000, true, 7)
	if given != (Limits{Weights: 250, Memory: 1000, Fixed: true, Steps: 7}) {
		t.Errorf("given: %+v", given)
	}
	if got := given.Half(); got != (Limits{Weights: 250, Memory: 500, Fixed: true, Steps: 7}) {
		t.Errorf("half: %+v", got)
	}
	if got := (Limits{}).Half().Memory; got < 1 {
		t.Errorf("half of the default: %d", got)
	}
}
