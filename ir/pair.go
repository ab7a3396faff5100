package ir

import "slices"

// Pair returns the index of the name in others that corresponds to each of names, outputs of two models: the equal one,
// and in order for those that the other list does not have, if there are equally many; -1 for the rest.
func Pair(names, others []string) []int {
	pairs, left := make([]int, len(names)), []int(nil)
	for i, name := range others {
		if !slices.Contains(names, name) {
			left = append(left, i)
		}
	}
	count := 0
	for i, name := range names {
		if pairs[i] = slices.Index(others, name); pairs[i] < 0 {
			count++
		}
	}
	for i, at := range pairs {
		if at < 0 && count == len(left) {
			pairs[i], left, count = left[0], left[1:], count-1
		}
	}
	return pairs
}
