package ir

import (
	"slices"
	"strings"
	"testing"
)

func TestPair(t *testing.T) {
	for _, c := range []struct {
		names, others string
		want          []int
	}{
		{"start end", "end start", []int{1, 0}},
		{"a b", "c d", []int{0, 1}},
		{"x end", "start end", []int{0, 1}},
		{"end x", "start end", []int{1, 0}},
		{"a", "b a c", []int{1}},
		{"a b", "a", []int{0, -1}},
		{"a x", "a y z", []int{0, -1}},
		{"x y end", "end p q", []int{1, 2, 0}},
	} {
		if got := Pair(strings.Fields(c.names), strings.Fields(c.others)); !slices.Equal(got, c.want) {
			t.Errorf("%s and %s: %v, want %v", c.names, c.others, got, c.want)
		}
	}
}
