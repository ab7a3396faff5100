package partition

// A minTree finds the least of consecutive numbers in logarithmic time.
type minTree struct {
	x    []int64
	tree []int32 // indices into x: leaf i is at len(x)+i, the lesser of two at half their index
}

func newMinTree(x []int64) *minTree {
	t := &minTree{x, make([]int32, 2*len(x))}
	for i := range x {
		t.tree[len(x)+i] = int32(i)
	}
	for i := len(x) - 1; i > 0; i-- {
		t.tree[i] = t.lesser(t.tree[2*i], t.tree[2*i+1])
	}
	return t
}

// least is the index of the first least number from first to end, end excluded; -1 if there are none.
func (t *minTree) least(first, end int) int {
	if first >= end {
		return -1
	}
	at := int32(first)
	// From the leaves up: where the range begins with a right child, or ends after a left one, that node is not
	// part of a larger one within the range.
	for i, j := first+len(t.x), end+len(t.x); i < j; i, j = i/2, j/2 {
		if i%2 == 1 {
			at = t.lesser(at, t.tree[i])
			i++
		}
		if j%2 == 1 {
			j--
			at = t.lesser(at, t.tree[j])
		}
	}
	return int(at)
}

// lesser is the index of the lesser of two numbers, of the first one if they are equal.
func (t *minTree) lesser(i, j int32) int32 {
	if t.x[j] < t.x[i] || t.x[j] == t.x[i] && j < i {
		return j
	}
	return i
}
