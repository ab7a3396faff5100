package text_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/text"
	"github.com/mcompress/mcompress/ir"
)

// Running one row of the table, like package engine.
func Example() {
	in := []*ir.Array{ir.TextOf([]string{"one two", "three"}, 2)}
	for _, row := range text.Ops() {
		if row.Type != "StringSplit" {
			continue
		}
		c := &op.Call{Node: op.NewNode(ir.OpID{Type: row.Type}, 20, nil, nil), In: in, Out: make([]*ir.Array, 2)}
		if err := row.Run(c); err != nil {
			panic(err)
		}
		fmt.Printf("%q %v\n", c.Out[0].Text, ir.View[int64](c.Out[1]))
	}
	// Output: ["one" "two" "three" ""] [2 1]
}
