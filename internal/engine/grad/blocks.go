package grad

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/mcompress/mcompress/ir"
)

// Blocks returns the segments of the forward graph that are the blocks of a pattern: the nodes of one module each, such
// as those of encoder.layer.0 for encoder.layer.*. The pattern is a glob of the components of module paths, divided by
// dots or slashes, and matches at the first component at which it can. Module paths are those that the exporter
// recorded, otherwise the names of nodes, or of their first results. Nodes of no block between two nodes of a block are
// part of its segment. A block between whose nodes are some of another one is several segments.
func (a *Activations) Blocks(pattern string) ([]Segment, error) {
	globs := components(pattern)
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	a.Close()
	var segments []Segment
	last := ""
	for i, n := range a.forward {
		block := blockOf(n, globs)
		switch {
		// last stays, so that the block may go on: exporters and optimizers insert nodes without a path inside blocks, each
		// of which would divide a segment in two, whose results between them are stored.
		case block == "":
		case block == last:
			segments[len(segments)-1].To = i + 1
		default:
			segments, last = append(segments, Segment{i, i + 1}), block
		}
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("pattern %q matches no block; blocks are %s", pattern,
			strings.Join(a.blockNames(), ", "))
	}
	return segments, nil
}

// components splits a path or pattern at slashes and dots. Exporters of PyTorch repeat the name of a list of modules:
// /layer1/layer1.0 is layer1.0.
func components(text string) (parts []string) {
	scopes := strings.Split(text, "/")
	for i, scope := range scopes {
		if i+1 < len(scopes) && strings.HasPrefix(scopes[i+1], scope+".") {
			continue
		}
		parts = append(parts, strings.Split(scope, ".")...)
	}
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// paths returns the paths of n, in order of preference.
func paths(n *ir.Node) [][]string {
	all := [][]string{components(n.Module), components(n.Name)}
	if v := n.Outputs[0]; v != nil {
		all = append(all, components(v.Name))
	}
	return all
}

// blockOf returns the path of the block of n, empty if it is in none.
func blockOf(n *ir.Node, globs []string) string {
	for _, p := range paths(n) {
		for at := 0; at+len(globs) <= len(p); at++ {
			if matches(p[at:at+len(globs)], globs) {
				return strings.Join(p[:at+len(globs)], ".")
			}
		}
	}
	return ""
}

func matches(names, globs []string) bool {
	for i, g := range globs {
		if ok, err := path.Match(g, names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// maxBlockNames limits the names in errors.
const maxBlockNames = 8

// blockNames returns patterns of repeated blocks of the graph, such as encoder.layer.*, or the first components of
// paths if nothing is repeated.
func (a *Activations) blockNames() []string {
	var repeated, first []string
	add := func(list *[]string, name string) {
		if len(*list) < maxBlockNames && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, n := range a.forward {
		for _, p := range paths(n) {
			if len(p) == 0 {
				continue
			}
			add(&first, p[0])
			if i := slices.IndexFunc(p, hasNumber); i >= 0 {
				add(&repeated, strings.Join(append(slices.Clone(p[:i]), numberless(p[i])), "."))
			}
			break
		}
	}
	if len(repeated) > 0 {
		return repeated
	}
	return first
}

func hasNumber(name string) bool { return strings.ContainsFunc(name, unicode.IsDigit) }

// numberless replaces the numbers of a name by asterisks.
func numberless(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case !unicode.IsDigit(r):
			b.WriteRune(r)
		case i == 0 || !unicode.IsDigit(rune(name[i-1])):
			b.WriteByte('*')
		}
	}
	return b.String()
}
