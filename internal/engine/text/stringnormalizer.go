package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// runNormalizer drops stop words, which are whole elements, and changes case. The locale is ignored: case is Unicode's.
func runNormalizer(c *op.Call) error {
	x, err := words(c.In, 0, "X")
	if err != nil {
		return err
	}
	if rank := len(x.Shape); rank != 1 && (rank != 2 || x.Shape[0] != 1) {
		return fmt.Errorf("X is %s, want [C] or [1,C]", x)
	}
	change, err := caseOf(c.Text("case_change_action", "NONE"))
	if err != nil {
		return err
	}
	same := strings.ToLower
	if c.Bool("is_case_sensitive", false) {
		same = func(s string) string { return s }
	}
	stops := map[string]bool{}
	for _, w := range c.Texts("stopwords") {
		stops[same(w)] = true
	}
	kept := make([]string, 0, len(x.Text))
	for _, w := range x.Text {
		if !stops[same(w)] {
			kept = append(kept, change(w))
		}
	}
	if len(kept) == 0 {
		kept = append(kept, "")
	}
	shape := slices.Clone(x.Shape)
	shape[len(shape)-1] = int64(len(kept))
	c.Out[0] = ir.TextOf(kept, shape...)
	return nil
}

func caseOf(action string) (func(string) string, error) {
	switch action {
	case "LOWER":
		return strings.ToLower, nil
	case "UPPER":
		return strings.ToUpper, nil
	case "NONE":
		return func(s string) string { return s }, nil
	}
	return nil, fmt.Errorf("case_change_action is %q, want LOWER, UPPER or NONE", action)
}
