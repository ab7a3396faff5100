package pass

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// constsWithoutInputs is the first IR version in which initializers need not be graph inputs.
const constsWithoutInputs = 4

// finish raises the IR version to the minimum of the rewritten model. Below IR 4 every initializer must be a graph input:
// weights are removed from the inputs, or, with KeepIR, new initializers are added to them.
func (c *Context) finish(was int64) {
	m := c.Model
	if c.KeepIR {
		c.listConsts()
		return
	}
	if !c.changed() {
		return
	}
	need := max(m.IRVersion, constsWithoutInputs, opset.IRVersion(m.Opset("")))
	if was < constsWithoutInputs {
		for _, v := range m.Graph.Consts() {
			m.Graph.RemoveInput(v)
		}
		c.Note("", Reason{Code: IRRaised, Detail: fmt.Sprintf("%d to %d", was, need)})
	}
	m.IRVersion = need
}

func (c *Context) changed() bool {
	for _, r := range c.rows {
		if r.Status == Changed {
			return true
		}
	}
	return false
}

func (c *Context) listConsts() {
	g := c.Model.Graph
	if c.Model.IRVersion >= constsWithoutInputs {
		return
	}
	input := map[*ir.Value]bool{}
	for _, v := range g.Inputs {
		input[v] = true
	}
	for _, v := range g.Consts() {
		if !input[v] {
			g.Inputs = append(g.Inputs, v)
		}
	}
}
