package grad

import (
	"errors"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

var errUnknownForm = errors.New("the gradient of this form of the operator is not supported; exclude the weights " +
	"before it from training")

// einsum: the gradient of an operand is the product of the result's gradient with the other operands, summed to the
// operand's indices. That is one more Einsum if each of its indices is also one of those, and no index is repeated
// within a term.
func einsum(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	eq := n.Attr("equation")
	if eq == nil {
		return nil, errUnknownForm
	}
	terms, out, err := einsumTerms(t, n, eq.S)
	if err != nil {
		return nil, err
	}
	dx := make([]*ir.Value, len(terms))
	for i, v := range n.Inputs() {
		if !t.Needs(v) {
			continue
		}
		from, in := []string{out}, []*ir.Value{dy[0]}
		for j, other := range n.Inputs() {
			if j != i {
				from, in = append(from, terms[j]), append(in, other)
			}
		}
		if missing(terms[i], strings.Join(from, "")) {
			return nil, errUnknownForm
		}
		dx[i] = t.Op("Einsum", in, ir.StringAttr("equation", strings.Join(from, ",")+"->"+terms[i]))
	}
	return dx, nil
}

// einsumTerms returns the indices of operands and result, explicit and without an ellipsis. Each index has one size:
// broadcast indices are not supported.
func einsumTerms(t *Tape, n *ir.Node, equation string) (terms []string, out string, err error) {
	left, out, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	terms = strings.Split(left, ",")
	if !explicit {
		out = implicit(left)
	}
	sizes := map[rune]int64{}
	for i, term := range terms {
		if i >= len(n.Inputs()) || strings.Contains(term, ".") || len(term) != len(t.Shape(n.Input(i))) ||
			repeats(term) {
			return nil, "", errUnknownForm
		}
		for axis, label := range term {
			size := t.Shape(n.Input(i))[axis]
			if have, ok := sizes[label]; ok && have != size {
				return nil, "", errUnknownForm
			}
			sizes[label] = size
		}
	}
	return terms, out, nil
}

// implicit returns the indices that occur once, in alphabetical order.
func implicit(left string) string {
	var once []string
	for _, label := range strings.Split(strings.ReplaceAll(left, ",", ""), "") {
		if strings.Count(left, label) == 1 {
			once = append(once, label)
		}
	}
	slices.Sort(once)
	return strings.Join(once, "")
}

func repeats(term string) bool {
	return strings.ContainsFunc(term, func(label rune) bool { return strings.Count(term, string(label)) > 1 })
}

// missing reports whether one of the labels is not among the others.
func missing(labels, others string) bool {
	return strings.ContainsFunc(labels, func(label rune) bool { return !strings.ContainsRune(others, label) })
}
