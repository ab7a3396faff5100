package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// transposedOperands fuses a Transpose of the last two axes into MatMul, such as that of a weight stored by outputs:
// neither the weight nor its gradient is transposed.
func transposedOperands(t *Tape, n *ir.Node) bool {
	in, found := slices.Clone(n.Inputs()), false
	var attrs []*ir.Attr
	for i, name := range []string{"transA", "transB"} {
		p := in[i].Producer()
		if len(t.Shape(in[1-i])) < 2 || !is(p, "", "Transpose") || !swapsLast(permOf(p, len(t.Shape(in[i])))) {
			continue
		}
		in[i], found = p.Input(0), true
		attrs = append(attrs, ir.IntAttr(name, 1))
	}
	if found {
		b := inserter{t.Builder, n}
		replaceOutput(n, 0, b.nodes(ir.OpID{Domain: microsoft, Type: "FusedMatMul"}, 1, in, attrs)[0])
	}
	return found
}

// swapsLast reports whether perm swaps the last two axes only.
func swapsLast(perm []int64) bool {
	n := len(perm)
	if n < 2 {
		return false
	}
	want := identityPermutation(n)
	want[n-2], want[n-1] = want[n-1], want[n-2]
	return slices.Equal(perm, want)
}
