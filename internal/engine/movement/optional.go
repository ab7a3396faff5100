package movement

import (
	"errors"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// optionals are a value itself, or empty.
func optionals() []op.Op {
	return []op.Op{
		{Type: "Identity", Since: 1, View: true, Shape: op.InputType(0)},
		{Type: "Optional", Since: 15, Run: runOptional},
		{Type: "OptionalGetElement", Since: 15, Run: runOptionalGetElement},
		{Type: "OptionalHasElement", Since: 15, Run: runOptionalHasElement},
	}
}

func runOptional(c *op.Call) error {
	if c.Out[0] = c.Opt(0); c.Out[0] == nil {
		c.Out[0] = &ir.Array{Kind: ir.None}
	}
	return nil
}

func runOptionalGetElement(c *op.Call) error {
	if c.Out[0] = c.Opt(0); c.Out[0] == nil || c.Out[0].Kind == ir.None {
		return errors.New("the optional is empty")
	}
	return nil
}

func runOptionalHasElement(c *op.Call) error {
	a := c.Opt(0)
	c.Out[0] = ir.ArrayOf([]bool{a != nil && a.Kind != ir.None})
	c.Out[0].DType = ir.Bool
	return nil
}
