package text

import (
	"slices"
	"strings"
	"unicode"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// runSplit returns the parts of each string, padded to the maximum number, and their numbers.
func runSplit(c *op.Call) error {
	x, err := words(c.In, 0, "X")
	if err != nil {
		return err
	}
	limit := -1
	if c.Has("maxsplit") {
		limit = int(c.Int("maxsplit", 0))
	}
	parts, most := make([][]string, len(x.Text)), 0
	counts := make([]int64, len(x.Text))
	for i, s := range x.Text {
		parts[i] = splitAt(s, c.Text("delimiter", ""), limit)
		counts[i] = int64(len(parts[i]))
		most = max(most, len(parts[i]))
	}
	if err := c.Account.Check(op.Size(ir.Spec{DType: ir.String,
		Shape: []int64{int64(len(parts)), int64(most)}})); err != nil {
		return err
	}
	all := make([]string, 0, most*len(parts))
	for _, p := range parts {
		all = append(append(all, p...), make([]string, most-len(p))...)
	}
	c.Out[0] = ir.TextOf(all, append(slices.Clone(x.Shape), int64(most))...)
	if len(c.Out) > 1 {
		c.Out[1] = ir.ArrayOf(counts, x.Shape...)
	}
	return nil
}

// splitAt splits s at the delimiter up to limit times, unlimited if negative. An empty delimiter means any run of white
// space; then parts have no leading white space.
func splitAt(s, delimiter string, limit int) []string {
	if delimiter != "" {
		// SplitN counts parts, ONNX splits.
		if limit >= 0 {
			limit++
		}
		return strings.SplitN(s, delimiter, limit)
	}
	var parts []string
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		end := strings.IndexFunc(s, unicode.IsSpace)
		if s == "" {
			return parts
		}
		if end < 0 || len(parts) == limit {
			return append(parts, s)
		}
		parts = append(parts, s[:end])
		s = s[end:]
	}
}
