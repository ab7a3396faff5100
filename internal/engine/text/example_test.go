package text_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/text"
	"github.com/mcompress/mcompress/ir"
)

// Two strings split at white space, and the number of their parts.
func Example() {
	out, err := optest.Run(text.Ops(), optest.Case{
		Type: "StringSplit", Version: 20,
		In:      []*ir.Array{ir.TextOf([]string{"one two", "three"}, 2)},
		Outputs: 2,
	})
	fmt.Printf("%q %v %v\n", out[0].Text, ir.View[int64](out[1]), err)
	// Output: ["one" "two" "three" ""] [2 1] <nil>
}
