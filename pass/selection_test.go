package pass

import (
	"slices"
	"testing"
)

// Patterns are split at commas, except those that are part of a pattern.
func TestPatternsOfAList(t *testing.T) {
	for list, want := range map[string][]string{
		"a,b":            {"a", "b"},
		"x.{a,b}.w,c":    {"x.{a,b}.w", "c"},
		"{a,{b,c}},d":    {"{a,{b,c}}", "d"},
		`\{a,b`:          {`\{a`, "b"},
		`a\,b`:           {`a\,b`},
		"":               {""},
		"op:{Conv,Gemm}": {"op:{Conv,Gemm}"},
	} {
		var g Globs
		if err := g.Set(list); err != nil {
			t.Errorf("%q: %v", list, err)
		}
		if !slices.Equal(g, want) {
			t.Errorf("%q became %q, want %q", list, g, want)
		}
		var again Globs
		if err := again.Set(g.String()); err != nil || !slices.Equal(again, g) {
			t.Errorf("%q is parsed again as %q: %v", g, again, err)
		}
	}
}
