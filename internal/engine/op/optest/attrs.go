package optest

import "github.com/mcompress/mcompress/ir"

// Attrs are attributes by name: int, []int, float64, []float32 or string.
type Attrs map[string]any

// List returns the attributes in the form that a node has.
func (a Attrs) List() []*ir.Attr {
	var list []*ir.Attr
	for name, v := range a {
		list = append(list, attr(name, v))
	}
	return list
}

func attr(name string, v any) *ir.Attr {
	switch v := v.(type) {
	case int:
		return ir.IntAttr(name, int64(v))
	case []int:
		list := make([]int64, len(v))
		for i, x := range v {
			list[i] = int64(x)
		}
		return ir.IntsAttr(name, list...)
	case float64:
		return ir.FloatAttr(name, float32(v))
	case []float32:
		return &ir.Attr{Name: name, Type: ir.AttrFloats, Floats: v}
	case string:
		return ir.StringAttr(name, v)
	}
	return &ir.Attr{Name: name}
}
