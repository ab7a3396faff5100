package kernel

import (
	"fmt"
	"math"
)

// NMRows prunes x to the n:m pattern along its elements: of every m consecutive ones the n of largest magnitude are
// kept and the others become +0. Of equal magnitudes the lower index is pruned first. A shorter last group keeps its n
// largest too, or all if it has at most n.
func NMRows(x []float32, n, m int) {
	checkNM(n, m)
	at := nmRowsBulk(x, n, m)
	for ; at < len(x); at += m {
		nmGroupGo(x[at:min(at+m, len(x))], 1, n)
	}
}

// NMCols is NMRows down columns: x is whole rows of cols columns, and in each column every m
// consecutive rows form a group.
func NMCols(x []float32, cols, n, m int) {
	checkNM(n, m)
	checkRows(len(x), cols)
	for size := m * cols; len(x) > 0; {
		group := x[:min(size, len(x))]
		for j := nmColsBulk(group, cols, n, m); j < cols; j++ {
			nmGroupGo(group[j:], cols, n)
		}
		x = x[len(group):]
	}
}

func checkNM(n, m int) {
	if n < 0 || m < 1 || n > m {
		panic(fmt.Sprintf("kernel: no %d:%d pattern", n, m))
	}
}

// nmGroupGo prunes the group x[0], x[stride], x[2*stride], …: elements are pruned in the order of their keys until n
// are left. Groups are small, so it searches each next key anew.
func nmGroupGo(x []float32, stride, n int) {
	size := (len(x) + stride - 1) / stride
	limit := uint64(0)
	for drop := size - n; drop > 0; drop-- {
		limit = leastKey(x, stride, limit) + 1
	}
	for i := 0; i < len(x); i += stride {
		if nmKey(x, i) < limit {
			x[i] = 0
		}
	}
}

// leastKey returns the least key of the group that is not below floor.
func leastKey(x []float32, stride int, floor uint64) uint64 {
	least := uint64(math.MaxUint64)
	for i := 0; i < len(x); i += stride {
		if k := nmKey(x, i); k >= floor {
			least = min(least, k)
		}
	}
	return least
}

// nmKey orders elements by magnitude, then by index.
func nmKey(x []float32, i int) uint64 {
	return uint64(math.Float32bits(x[i])&magnitude)<<32 | uint64(i)
}
