package sparse

import (
	"flag"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Dense turns the forms of this package, and tensors stored as coordinates by any
// program, into plain weights again, bit for bit.
var Dense = &pass.Method{
	Name:    "dense",
	Command: "sparse",
	Doc:     "undo sparse forms: plain weights, bit for bit",
	Stage:   pass.Prepare,
	Bind:    func(*flag.FlagSet) func(*pass.Context) error { return densify },
}

func densify(c *pass.Context) error {
	f := newFinder(c)
	fs := f.all()
	own := partsOf(fs)
	var coordinates []*ir.Value
	for g := range c.Model.Graphs() {
		for _, v := range g.Consts() {
			switch {
			case lifted(v) && stores(v.Const.DType) && !overridable(v) && !v.Ambiguous:
				coordinates = append(coordinates, v)
			case pass.IsWeight(v.Const) && own[v.Const] == "":
				c.Skip(v, pass.Readers(v), "it is stored plainly")
			}
		}
	}
	for _, x := range fs {
		if plain(c, x.value, restore(x.layout, x.value.Name)(x.parts), x.reason()) {
			f.forget(x.parts)
		}
	}
	for _, v := range coordinates {
		plain(c, v, v.Const, "it was stored as coordinates")
	}
	return nil
}

func (x found) reason() string {
	return arithmetic([]size{{x.label(), cost(x.layout, x.value)}, {"dense", denseCost(x.dense(), x.value.Name)}})
}

// forget clears constants that left the graph with their form: the row is that of the
// dense weight.
func (f *finder) forget(parts []*ir.Tensor) {
	for _, t := range parts {
		if v := f.holders[t]; v != nil && v.Removed() {
			v.Const = nil
		}
	}
}

// plain makes t the constant that v's readers read instead, under v's name, unless v is
// not selected.
func plain(c *pass.Context, v *ir.Value, t *ir.Tensor, reason string) bool {
	readers := pass.Readers(v)
	if c.Select.Excludes(&ir.Value{Name: v.Name, Const: t}, readers) != "" {
		return false
	}
	w := v.Graph().AddConst("c", &ir.Tensor{Spec: t.Spec, Source: t.Source})
	v.ReplaceUses(w)
	v.Drop()
	if !isOutput(w) { // which has v's name by now
		w.Name = v.Name
	}
	c.Changed(v, t, readers, pass.Row{
		Form: pass.InPlace, Reason: reason,
		After:   []pass.Part{{Role: pass.Payload, Value: w, Tensor: w.Const}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return parts[0] },
	})
	return true
}
