package linear

import (
	"fmt"
	"slices"
	"strings"
)

// A label is an axis of an equation: a letter, or one of the axes of an ellipsis, which are numbered from ellipsis on.
type label int

const ellipsis label = 1 << 16

// An equation is Einsum's, with expanded ellipses.
type equation struct {
	terms [][]label // of each operand
	out   []label
}

// parseEquation parses text for operands of these ranks (ONNX Einsum).
func parseEquation(text string, ranks []int) (*equation, error) {
	left, right, explicit := strings.Cut(strings.ReplaceAll(text, " ", ""), "->")
	words := strings.Split(left, ",")
	if len(words) != len(ranks) {
		return nil, fmt.Errorf("equation %q has %d operands, got %d inputs", text, len(words), len(ranks))
	}
	terms, widest := make([]term, len(words)), 0
	for i, w := range words {
		var err error
		if terms[i], err = parseTerm(w); err != nil {
			return nil, fmt.Errorf("equation %q: %w", text, err)
		}
		width := ranks[i] - len(terms[i].head) - len(terms[i].tail)
		if width < 0 || width > 0 && !terms[i].dots {
			return nil, fmt.Errorf("equation %q: term %q does not have rank %d", text, w, ranks[i])
		}
		terms[i].width, widest = width, max(widest, width)
	}
	e := &equation{}
	for _, t := range terms {
		e.terms = append(e.terms, t.labels(widest))
	}
	if !explicit {
		e.out = e.implicit(widest)
		return e, nil
	}
	out, err := parseTerm(right)
	if err != nil {
		return nil, fmt.Errorf("equation %q: %w", text, err)
	}
	out.width = widest
	e.out = out.labels(widest)
	return e, e.check(text)
}

// check is an error unless each label of the result occurs once there, and in an operand.
func (e *equation) check(text string) error {
	for i, l := range e.out {
		if slices.Contains(e.out[:i], l) || e.count(l) == 0 {
			return fmt.Errorf("equation %q: label %q is repeated in the result, or in no operand", text, rune(l))
		}
	}
	return nil
}

// count is the number of occurrences of l in the operands.
func (e *equation) count(l label) int {
	n := 0
	for _, t := range e.terms {
		for _, have := range t {
			if have == l {
				n++
			}
		}
	}
	return n
}

// implicit is the result of an equation without an explicit one: the ellipsis, then the letters that occur once, in
// ASCII order.
func (e *equation) implicit(widest int) []label {
	out := term{dots: true, width: widest}.labels(widest)
	for l := label('A'); l <= 'z'; l++ {
		if e.count(l) == 1 {
			out = append(out, l)
		}
	}
	return out
}

// A term is the letters before and after an ellipsis of width axes.
type term struct {
	head, tail []label
	dots       bool
	width      int
}

func parseTerm(word string) (t term, err error) {
	head, tail, dots := strings.Cut(word, "...")
	t.dots = dots
	if t.head, err = letters(head); err == nil {
		t.tail, err = letters(tail)
	}
	return t, err
}

func letters(s string) ([]label, error) {
	var out []label
	for _, r := range s {
		if r < 'A' || r > 'z' || r > 'Z' && r < 'a' {
			return nil, fmt.Errorf("%q is not a letter", r)
		}
		out = append(out, label(r))
	}
	return out, nil
}

// labels are the term's; the axes of its ellipsis are the last ones of the widest.
func (t term) labels(widest int) []label {
	out := slices.Clone(t.head)
	if t.dots {
		for i := widest - t.width; i < widest; i++ {
			out = append(out, ellipsis+label(i))
		}
	}
	return append(out, t.tail...)
}
