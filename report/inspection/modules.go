package inspection

import (
	"slices"
	"strings"
)

// A Module is a module of the model, with the constants of the modules in it.
type Module struct {
	Name    string // last part of the path
	Tensors int
	Bytes   int64
	Modules []*Module // in the order of their first tensors
}

// Modules is the tree of the modules of all constants; the root has the name "".
func (m *Model) Modules() *Module {
	root := &Module{}
	for _, t := range m.Tensors {
		at := root
		at.add(t)
		if t.Module == "" {
			continue
		}
		for name := range strings.SplitSeq(t.Module, ".") {
			at = at.child(name)
			at.add(t)
		}
	}
	return root
}

func (m *Module) add(t Tensor) {
	m.Tensors++
	m.Bytes += t.Bytes
}

// child returns the module of that name in m.
func (m *Module) child(name string) *Module {
	if i := slices.IndexFunc(m.Modules, func(c *Module) bool { return c.Name == name }); i >= 0 {
		return m.Modules[i]
	}
	c := &Module{Name: name}
	m.Modules = append(m.Modules, c)
	return c
}
