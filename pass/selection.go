package pass

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mcompress/mcompress/ir"
)

// A Selection says which weights a step may take: globs over tensor and node names,
// or op:Type over operators, and the smallest size in elements.
type Selection struct {
	Only    Globs `flag:"only" usage:"take only tensors and nodes that match these 'globs' (op:MatMul for operators)"`
	Skip    Globs `flag:"skip" usage:"leave tensors and nodes alone that match these 'globs'"`
	MinSize int64 `flag:"min-size" usage:"leave tensors of fewer 'elements' alone"`
}

// Globs is a list of patterns; as a flag it may be given several times, or with commas.
type Globs []string

// String joins the patterns as Set takes them.
func (g *Globs) String() string { return strings.Join(*g, ",") }

// Set adds comma-separated patterns. Commas within braces are part of one.
func (g *Globs) Set(s string) error {
	for _, p := range patterns(s) {
		if !doublestar.ValidatePattern(strings.TrimPrefix(p, "op:")) {
			return fmt.Errorf("%q is no pattern: see * ? [abc] {a,b}", p)
		}
		*g = append(*g, p)
	}
	return nil
}

// patterns cuts a list at its commas, but for those within braces or behind a backslash.
func patterns(list string) []string {
	var cut []string
	from, depth := 0, 0
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\':
			i++
		case c == '{':
			depth++
		case c == '}':
			depth = max(0, depth-1)
		case c == ',' && depth == 0:
			cut, from = append(cut, list[from:i]), i+1
		}
	}
	return append(cut, list[from:])
}

// Selected is s: option structs embed it.
func (s Selection) Selected() Selection { return s }

// Excludes gives the reason why v, read by the given nodes, is not selected, or "".
func (s *Selection) Excludes(v *ir.Value, readers []*ir.Node) string {
	if v.Const.Elems() < s.MinSize {
		return fmt.Sprintf("smaller than --min-size %d", s.MinSize)
	}
	if len(s.Only) > 0 && !s.Only.match(v, readers) {
		return "not selected by --only"
	}
	if s.Skip.match(v, readers) {
		return "selected by --skip"
	}
	return ""
}

func (g Globs) match(v *ir.Value, readers []*ir.Node) bool {
	for _, p := range g {
		if !strings.HasPrefix(p, "op:") && glob(p, v.Name) {
			return true
		}
	}
	return slices.ContainsFunc(readers, g.Node)
}

// Node reports whether g names n, by its name or its operator.
func (g Globs) Node(n *ir.Node) bool {
	for _, p := range g {
		op, isOp := strings.CutPrefix(p, "op:")
		if isOp && glob(op, n.Op.Type) || !isOp && n.Name != "" && glob(p, n.Name) {
			return true
		}
	}
	return false
}

// glob matches names as flat strings: a * also spans slashes, which exporters put
// into names of nested modules.
func glob(pattern, name string) bool {
	ok, err := doublestar.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}
