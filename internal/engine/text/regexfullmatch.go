package text

import (
	"fmt"
	"regexp"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func matchShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := words(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if _, err := pattern(n); err != nil {
		return nil, err
	}
	return op.One(ir.Bool, x.Shape...)
}

// pattern is the node's expression; Go's have the syntax of RE2, as ONNX requires.
func pattern(n *op.Node) (*regexp.Regexp, error) {
	re, err := regexp.Compile(n.Text("pattern", ""))
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", n.Text("pattern", ""), err)
	}
	re.Longest() // if the whole string matches, it is the longest of the leftmost matches
	return re, nil
}

func runMatch(c *op.Call) error {
	re, err := pattern(c.Node)
	if err != nil {
		return err
	}
	y := ir.View[bool](c.Out[0])
	for i, s := range c.In[0].Text {
		found := re.FindStringIndex(s)
		y[i] = found != nil && found[0] == 0 && found[1] == len(s)
	}
	return nil
}
