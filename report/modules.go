package report

import (
	"cmp"
	"slices"
	"strings"
)

// minModules is the number of modules from which a level of the tree of modules is detailed enough for a page.
const minModules = 10

// A Module is the weights of one module, those of the modules in it included. All modules of a report are on one level
// of the tree: encoder.layer.0 rather than encoder.
type Module struct {
	Path    string  `json:"path"`            // empty for weights whose module is not known
	Weights int     `json:"weights"`         // number of tensors
	Bytes   Change  `json:"bytes"`           // in the files, sums of those of the weights
	Ratio   float64 `json:"ratio"`           // bytes before by bytes after; 0 where the result has none
	Worst   string  `json:"worst,omitempty"` // the changed weight with the lowest SQNR
	Error   *Error  `json:"error,omitempty"` // of that weight; absent where none was measured
}

// modules groups weights by module; nil where most bytes are outside of modules, or all are in one.
func modules(ws []Weight) []Module {
	all, inside, depth := int64(0), int64(0), 0
	for _, w := range ws {
		all += w.Bytes.Before
		if w.Module != "" {
			inside += w.Bytes.Before
			depth = max(depth, strings.Count(w.Module, ".")+1)
		}
	}
	if 2*inside < all {
		return nil
	}
	var ms []Module
	for level := 1; level <= depth && len(ms) < minModules; level++ {
		ms = atLevel(ws, level)
	}
	if named := slices.DeleteFunc(slices.Clone(ms), func(m Module) bool { return m.Path == "" }); len(named) < 2 {
		return nil
	}
	return ms
}

// atLevel groups weights by the first parts of their paths, in the order of their first weights; those without a path
// are last.
func atLevel(ws []Weight, level int) []Module {
	var ms []Module
	index := map[string]int{}
	for _, w := range ws {
		parts := strings.Split(w.Module, ".")
		path := strings.Join(parts[:min(level, len(parts))], ".")
		i, found := index[path]
		if !found {
			i = len(ms)
			index[path] = i
			ms = append(ms, Module{Path: path})
		}
		ms[i].add(w)
	}
	slices.SortStableFunc(
		ms,
		func(a, b Module) int { return cmp.Compare(len(b.Path), 0) - cmp.Compare(len(a.Path), 0) },
	)
	for i := range ms {
		ms[i].Ratio = round(ratio(ms[i].Bytes), 4)
	}
	return ms
}

func (m *Module) add(w Weight) {
	m.Weights++
	m.Bytes.Before += w.Bytes.Before
	m.Bytes.After += w.Bytes.After
	if w.Error != nil && (m.Error == nil || w.Error.worse(m.Error)) {
		m.Worst, m.Error = w.Tensor, w.Error
	}
}

// Name is the path of m in tables.
func (m Module) Name() string {
	if m.Path == "" {
		return "(no module)"
	}
	return m.Path
}

// modules writes the table of modules.
func (m *markdown) modules(ms []Module) {
	if len(ms) == 0 {
		return
	}
	var table [][]inline
	for _, x := range ms[:rows(len(ms))] {
		table = append(table, append([]inline{code(x.Name())}, cells(
			count(int64(x.Weights)), size(x.Bytes.Before), size(x.Bytes.After), times(x.Ratio), sqnr(x.Error),
		)...))
	}
	m.line("### Modules (%s)", numberOf(len(ms)))
	m.folded([]inline{"module", "weights:", "before:", "after:", "ratio:", "lowest SQNR:"}, table, shown)
	m.omitted(len(ms))
}
