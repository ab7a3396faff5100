package sparse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

// A size is the bytes of a tensor in one form, with the nodes that restore it.
type size struct {
	label string
	bytes int64
}

// arithmetic lists sizes, the smallest first.
func arithmetic(sizes []size) string {
	slices.SortStableFunc(sizes, func(a, b size) int { return cmp.Compare(a.bytes, b.bytes) })
	texts := make([]string, len(sizes))
	for i, s := range sizes {
		texts[i] = s.label + " " + bytesText(s.bytes)
	}
	return strings.Join(texts, "; ")
}

func bytesText(n int64) string { return humanize.Comma(n) + " B" }

// sparsity is the fraction of elements that are not stored, as text.
func (t tensor) sparsity() string {
	n := t.Elems()
	percent := 100 * float64(n-t.nnz) / float64(n)
	if t.fill != 0 {
		return fmt.Sprintf("%.1f %% equal to %d", percent, t.fill)
	}
	return fmt.Sprintf("%.1f %% zeros", percent)
}
