package pass

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
)

// A Selection is the weights that a step applies to: globs over the names of tensors, nodes and modules, or op:Type
// over operators, and the minimum size in elements. A module includes its submodules.
type Selection struct {
	// Only are globs over the names of tensors, nodes and modules to which the step applies, or op:Type over operators;
	// empty for all.
	Only Globs `flag:"only" list:"yes" usage:"apply to tensors, nodes and modules that match these 'globs' only (op:MatMul for operators)"`
	// Skip are globs of those that are left as they are.
	Skip Globs `flag:"skip" list:"yes" usage:"skip tensors, nodes and modules that match these 'globs'"`
	// MinSize is the number of elements below which tensors are left as they are.
	MinSize int64 `flag:"min-size" usage:"skip tensors with fewer 'elements'"`

	searched bool              // Only is the result of a search
	unfit    map[string]Reason // of the environment
}

// Globs is a list of patterns; as a flag it may be given several times, or with commas.
type Globs []string

// String is the list in the syntax of Set.
func (g *Globs) String() string { return strings.Join(*g, ",") }

// Set adds comma-separated patterns. Commas within braces are part of one.
func (g *Globs) Set(s string) error {
	for _, p := range patterns(s) {
		if !doublestar.ValidatePattern(strings.TrimPrefix(p, opPrefix)) {
			return fmt.Errorf("%q is not a valid pattern; supported are * ? [abc] {a,b}", p)
		}
		if err := bounded.CheckPattern(p); err != nil {
			return err
		}
		*g = append(*g, p)
	}
	return nil
}

// patterns splits a list at its commas, except within braces or after a backslash.
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

// Excludes reports whether v, which the given nodes consume, is not selected. Skip records the reason.
func (s *Selection) Excludes(v *ir.Value, consumers []*ir.Node) bool {
	return !s.Reason(v, consumers).None()
}

// Reason is the reason why v, which the given nodes consume, is not selected; none if it is.
func (s *Selection) Reason(v *ir.Value, consumers []*ir.Node) Reason {
	if r, is := s.unfit[v.Name]; is {
		return r
	}
	switch {
	case v.Initializer().Elems() < s.MinSize:
		return Reason{Code: Small, Detail: fmt.Sprint(s.MinSize)}
	case len(s.Only) > 0 && !s.Only.match(v, consumers):
		if s.searched {
			return Reason{Code: NotChosen}
		}
		return Reason{Code: NotSelected}
	case s.Skip.match(v, consumers):
		return Reason{Code: Deselected}
	}
	return Reason{}
}

// match reports whether g matches the constant v, one of its consumers, or a module that it is part of.
func (g Globs) match(v *ir.Value, consumers []*ir.Node) bool {
	return g.name(v.Name) || slices.ContainsFunc(consumers, g.Node) || ancestors(parameterModule(v.Name), g.name)
}

// Node reports whether g matches n, by its name or its operator, or a module that n is part of.
func (g Globs) Node(n *ir.Node) bool {
	return len(g) > 0 && (g.operator(n.Op.Type) || n.Name != "" && g.name(n.Name) || ancestors(nodeModule(n), g.name))
}

// name reports whether a pattern matches a name or path.
func (g Globs) name(name string) bool {
	return slices.ContainsFunc(g, func(p string) bool { return !strings.HasPrefix(p, opPrefix) && glob(p, name) })
}

// operator reports whether a pattern for operators matches a type.
func (g Globs) operator(typ string) bool {
	return slices.ContainsFunc(g, func(p string) bool {
		op, ok := strings.CutPrefix(p, opPrefix)
		return ok && glob(op, typ)
	})
}

// opPrefix marks patterns for operators.
const opPrefix = "op:"

// Patterns are the patterns, each of which must match something.
func (g *Globs) Patterns() []string { return *g }

// glob matches names as flat strings: a * also matches slashes, which separate nested modules in names.
func glob(pattern, name string) bool {
	// A search selects weights by their names, each compared with each node and weight: matching them as patterns was
	// 1.6 % of the processor time of --auto on MiniLM.
	if !strings.ContainsAny(pattern, `*?[{\`) {
		return pattern == name
	}
	ok, err := doublestar.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}
