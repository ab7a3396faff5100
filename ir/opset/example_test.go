package opset_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// A model of opset 11 keeps the axes of Squeeze in an attribute; from 13 on they are
// an input. An operator that no standard has is refused, and nothing changes.
func ExampleRaise() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 11}}
	x := m.Graph.NewValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{Param: "batch"}, {N: 1}, {N: 64}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	y := m.Graph.Insert(nil, "Squeeze", []*ir.Value{x}, ir.IntsAttr("axes", 1))
	m.Graph.AddOutput(y)

	e := ir.NewEval("")
	defer e.Close()
	if err := opset.Raise(context.Background(), e, m, 13); err != nil {
		fmt.Println(err)
	}
	n := y.Producer()
	rank, _ := opset.Rank(y)
	fmt.Println(m.Opset(""), len(n.Attrs), len(n.Inputs()), rank, opset.Elem(y))

	m.Graph.Insert(nil, "ImageScaler", []*ir.Value{y})
	err := opset.CanRaise(context.Background(), e, m, 21)
	var no *opset.Unsupported
	fmt.Println(errors.As(err, &no), err)
	// Output:
	// 13 0 2 2 float
	// true opset 13 to 21: node "ImageScaler(t1)" (ImageScaler): is not an operator of the standard
}
