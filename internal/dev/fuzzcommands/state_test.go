package main

import (
	"maps"
	"slices"
	"testing"
)

// A run that is killed loses neither findings nor cases: those that ended are counted once, and those that had begun
// are run again, first.
func TestStateOfKilledRuns(t *testing.T) {
	dir := t.TempDir()
	var ran []int
	run := func(begin, end int) { // begins cases and ends some of them, out of order, without any other end
		f := &fuzzer{dir: dir, seed: 3, start: 7, end: 20}
		if err := f.load(); err != nil {
			t.Fatal(err)
		}
		var begun []int
		for range begin {
			if i, ok := f.next(); ok {
				begun = append(begun, i)
			}
		}
		slices.Reverse(begun)
		for _, i := range begun[:min(end, len(begun))] {
			ran = append(ran, i)
			c := &testCase{number: i, code: i % 2, label: "auto", operators: []string{"Add"}}
			if i%5 == 0 {
				c.finding = "exit code 9"
			}
			if err := f.count(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(4, 2)
	run(3, 1)
	run(0, 0)
	run(20, 20)
	slices.Sort(ran)
	if want := []int{7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}; !slices.Equal(ran, want) {
		t.Errorf("cases %v ended, want %v", ran, want)
	}
	f := &fuzzer{dir: dir, seed: 3}
	if err := f.load(); err != nil {
		t.Fatal(err)
	}
	s := f.state
	if s.Next != 20 || len(s.Begun) != 0 || s.Cases != 13 || s.Codes[0] != 6 || s.Codes[1] != 7 {
		t.Errorf("%+v", s)
	}
	if want := map[string]int{"auto": 13}; !maps.Equal(s.Commands, want) || s.Operators["Add"] != 13 {
		t.Errorf("%v, %v", s.Commands, s.Operators)
	}
	if found := s.Findings["exit code N"]; s.findings() != 2 || len(found) != 2 {
		t.Errorf("%v", s.Findings)
	}
}
