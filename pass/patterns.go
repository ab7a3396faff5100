package pass

import (
	"cmp"
	"flag"
	"maps"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A globOption holds globs over names of the model, each of which must match something.
type globOption interface{ Patterns() []string }

// checkPatterns reports a pattern of the step that matches nothing, neither in the model nor in the source, and the
// nearest names.
func (s *Step) checkPatterns(o Options) (err error) {
	var known *vocabulary
	flagsOf(o).VisitAll(func(f *flag.Flag) {
		p, ok := f.Value.(globOption)
		if own, field := f.Value.(*field); field {
			p, ok = own.value().(globOption)
		}
		if !ok || err != nil {
			return
		}
		for _, pattern := range p.Patterns() {
			if known == nil {
				// Of the source, too: patterns are given for all steps, and an earlier one may have renamed or removed what they
				// match.
				known = namesOf(s.Model, s.Env.Source)
			}
			// In a model without any names there is no name to misspell.
			if err == nil && len(known.like(pattern)) > 0 && !known.matched(pattern) {
				err = OptionErrorf("--%s: %q matches no tensor, node, module or operator; the nearest names are %s", f.Name,
					pattern,
					strings.Join(known.nearest(pattern), ", "))
			}
		}
	})
	return err
}

// A vocabulary is the names that globs match.
type vocabulary struct{ values, ops []string }

func namesOf(models ...*ir.Model) *vocabulary {
	values, ops := map[string]bool{}, map[string]bool{}
	module := func(path string) {
		ancestors(path, func(p string) bool {
			values[p] = true
			return false
		})
	}
	for _, m := range models {
		if m == nil {
			continue
		}
		for n := range m.Nodes() {
			values[n.Name], ops[opPrefix+n.Op.Type] = true, true
			module(nodeModule(n))
			for _, out := range n.Outputs {
				if out != nil {
					values[out.Name] = true
				}
			}
		}
		for g := range m.Graphs() {
			for _, v := range g.Consts() {
				values[v.Name] = true
				module(parameterModule(v.Name))
			}
		}
	}
	delete(values, "")
	return &vocabulary{sorted(values), sorted(ops)}
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// like are the names of the kind of pattern: operators or others.
func (n *vocabulary) like(pattern string) []string {
	if strings.HasPrefix(pattern, opPrefix) {
		return n.ops
	}
	return n.values
}

func (n *vocabulary) matched(pattern string) bool {
	return slices.ContainsFunc(n.like(pattern), func(name string) bool { return glob(pattern, name) })
}

// shownNames is the number of names that an error lists.
const shownNames = 3

// nearest are the names in which the text of the pattern is found with the fewest edits.
func (n *vocabulary) nearest(pattern string) []string {
	text := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*?[]{}\\`, r) {
			return -1
		}
		return r
	}, pattern)
	list := Nearest(text, n.like(pattern))
	return list[:min(shownNames, len(list))]
}

// Nearest returns names in the order of the fewest edits with which text is found in them.
func Nearest(text string, names []string) []string {
	list := slices.Clone(names)
	distance := map[string]int{}
	for _, name := range list {
		distance[name] = edits(text, name)
	}
	slices.SortStableFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), cmp.Compare(len(a), len(b)))
	})
	return list
}

// edits is the minimum number of insertions, deletions and replacements that make some part of name equal text (Sellers
// 1980).
func edits(text, name string) int {
	row := make([]int, len(name)+1) // for the empty text, which is a part of any name
	// One row of the table of edit distances, whose first row is 0 everywhere and whose minimum is taken over the last
	// one: so the match may begin and end anywhere in name.
	for i := range len(text) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(name) {
			replace := diagonal
			if text[i] != name[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return slices.Min(row)
}
