package main

import (
	"slices"
	"testing"
	"time"
)

// Tests of up to a second are quick; subtests, and tests that failed, have no time of their own.
func TestQuickTests(t *testing.T) {
	times, failed, skipped := parseTimes(`{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA/sub","Elapsed":0.5}
{"Action":"pass","Test":"TestA","Elapsed":1}
{"Action":"pass","Test":"TestB","Elapsed":0}
{"Action":"pass","Test":"TestSlow","Elapsed":3}
{"Action":"fail","Test":"TestFails","Elapsed":0.1}
{"Action":"skip","Test":"TestOfAProgram","Elapsed":0}
{"Action":"fail","Elapsed":5}
`)
	if !slices.Equal(failed, []string{"TestFails"}) || !slices.Equal(skipped, []string{"TestOfAProgram"}) {
		t.Errorf("failed %v, skipped %v", failed, skipped)
	}
	if _, failed, _ := parseTimes(`{"Action":"output","Test":"TestLong","Output":"panic: test timed out after 3m0s\n"}
{"Action":"fail","Test":"TestLong","Elapsed":180}
`); failed != nil {
		t.Errorf("a test that does not end has failed: %v", failed)
	}
	names, quick, others := quickTests(times)
	if want := []string{"TestA", "TestB"}; !slices.Equal(names, want) {
		t.Errorf("quick tests %v, want %v", names, want)
	}
	if quick != time.Second+time.Millisecond || others != 3*time.Second {
		t.Errorf("quick tests last %v and the others %v", quick, others)
	}
}
