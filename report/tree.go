package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	maxLevels   = 12  // of modules; the rest of a path is one name
	maxChildren = 40  // of a branch; beyond it, all but the largest are in a branch of their own
	mainBranch  = 30  // the number of those largest
	maxRest     = 300 // rows of the branch of the others
)

// A branch is a module with its modules and weights, or a single weight, in the tree of a page.
type branch struct {
	Name     string
	Weights  int64 // number of weights; 0 for a single weight
	Bytes    Change
	Error    *Error // the lowest SQNR of its weights
	Children []*branch
	Omitted  string // note on children without rows
	Before   number // length of the bars
	After    number // in percent of the largest branch
	Open     bool   // shown with its children

	path    string // of the module
	modules map[string]*branch
	entries []treeEntry
	rest    bool // the smaller children of another branch
}

// An treeEntry is a module or, where it has none, a weight.
type treeEntry struct {
	*branch
	weight *Weight
}

func (e treeEntry) size() int64 {
	if e.branch != nil {
		return e.Bytes.Before
	}
	return e.weight.Bytes.Before
}

// tree groups weights by module, in the order of the model. It has maxRows rows at most: the branches with most bytes
// are expanded.
func tree(ws []Weight) *branch {
	root := &branch{}
	for i := range ws {
		root.insert(&ws[i])
	}
	left := maxRows
	for closed := []*branch{root}; len(closed) > 0; {
		// Greedy: rows are spent where most bytes are.
		b := slices.MaxFunc(closed, func(a, b *branch) int { return cmp.Compare(a.Bytes.Before, b.Bytes.Before) })
		closed = slices.DeleteFunc(closed, func(c *branch) bool { return c == b })
		children := b.children()
		if len(children) > left {
			b.Omitted = plural(b.Weights, "weight") + ": see the JSON report"
			continue
		}
		b.Children = children
		left -= len(children)
		for _, c := range children {
			if len(c.entries) > 0 {
				closed = append(closed, c)
			}
		}
	}
	root.scale(root.longest())
	root.open()
	return root
}

// insert adds w to the modules of its path, which it makes where they are new.
func (b *branch) insert(w *Weight) {
	b.add(w.Bytes, w.Error, 1)
	if w.Scope != "" {
		b = b.module(w.Scope, "")
		b.add(w.Bytes, w.Error, 1)
	}
	path := w.Module
	for level := 1; path != ""; level++ {
		part, rest, _ := strings.Cut(path, ".")
		if level == maxLevels {
			part, rest = path, ""
		}
		b = b.module(part, strings.TrimSuffix(w.Module[:len(w.Module)-len(rest)], "."))
		b.add(w.Bytes, w.Error, 1)
		path = rest
	}
	b.entries = append(b.entries, treeEntry{weight: w})
}

// module is the module of that name in b, with its whole path.
func (b *branch) module(name, path string) *branch {
	child := b.modules[name]
	if child == nil {
		child = &branch{Name: name, path: path}
		if b.modules == nil {
			b.modules = map[string]*branch{}
		}
		b.modules[name] = child
		b.entries = append(b.entries, treeEntry{branch: child})
	}
	return child
}

func (b *branch) add(bytes Change, err *Error, weights int64) {
	b.Weights += weights
	b.Bytes.Before += bytes.Before
	b.Bytes.After += bytes.After
	if err != nil && (b.Error == nil || err.worse(b.Error)) {
		b.Error = err
	}
}

// children are the rows below b.
func (b *branch) children() []*branch {
	entries := b.entries
	if b.rest && len(entries) > maxRest {
		entries, _ = b.largest(maxRest)
		b.Omitted = plural(int64(len(b.entries)-maxRest), "more")
	}
	var rest *branch
	if !b.rest && len(entries) > maxChildren {
		entries, rest = b.largest(mainBranch)
	}
	var children []*branch
	for _, e := range entries {
		children = append(children, e.row(b.path))
	}
	if rest != nil {
		children = append(children, rest)
	}
	return children
}

// largest are the n largest entries of b in the order of the model, and a branch of the others.
func (b *branch) largest(n int) ([]treeEntry, *branch) {
	sizes := make([]int64, len(b.entries))
	for i, x := range b.entries {
		sizes[i] = x.size()
	}
	slices.Sort(sizes)
	least := sizes[len(sizes)-n]
	// Of entries of the least size that is listed only so many are, in the order of the model.
	equal := n // of the largest that have the least size
	for _, size := range sizes[len(sizes)-n:] {
		if size > least {
			equal--
		}
	}
	rest := &branch{Name: fmt.Sprintf("%s smaller", count(int64(len(sizes)-n))), path: b.path, rest: true}
	var few []treeEntry
	for _, e := range b.entries {
		switch size := e.size(); {
		case size > least || size == least && equal > 0:
			if size == least {
				equal--
			}
			few = append(few, e)
			continue
		case e.branch != nil:
			rest.add(e.Bytes, e.Error, e.Weights)
		default:
			rest.add(e.weight.Bytes, e.weight.Error, 1)
		}
		rest.entries = append(rest.entries, e)
	}
	return few, rest
}

// row is e as a child of the module of that path. A module with a single treeEntry is one row with it.
func (e treeEntry) row(path string) *branch {
	if e.branch == nil {
		w := e.weight
		return &branch{Name: strings.TrimPrefix(w.Tensor, path+"."), Bytes: w.Bytes, Error: w.Error}
	}
	b := e.branch
	for len(b.entries) == 1 {
		only := b.entries[0]
		if only.branch == nil {
			name, inside := strings.CutPrefix(only.weight.Tensor, b.path+".")
			if b.Weights, b.entries = 0, nil; inside {
				b.Name += "." + name
			} else {
				b.Name += " (" + name + ")"
			}
			break
		}
		only.Name = b.Name + "." + only.Name
		b = only.branch
	}
	return b
}

// longest is the largest size of a child, before or after.
func (b *branch) longest() int64 {
	most := int64(1)
	for _, c := range b.Children {
		most = max(most, c.Bytes.Before, c.Bytes.After)
	}
	return most
}

// scale sets the lengths of the bars below b.
func (b *branch) scale(most int64) {
	b.Before = number(100 * float64(b.Bytes.Before) / float64(most))
	b.After = number(100 * float64(b.Bytes.After) / float64(most))
	for _, c := range b.Children {
		c.scale(most)
	}
}

// open opens level after level of the tree, as long as few rows are visible.
func (b *branch) open() {
	visible := 0
	for level := []*branch{b}; len(level) > 0; {
		var next []*branch
		for _, c := range level {
			next = append(next, c.Children...)
		}
		if visible += len(next); visible > maxChildren {
			return
		}
		for _, c := range level {
			c.Open = true
		}
		level = next
	}
}
