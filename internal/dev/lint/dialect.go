package lint

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A term is a word or phrase that is no technical English of this field, with what to write instead. Upper and lower case are
// equal, a space matches any white space, and matches within one of the phrases of except do not count.
type term struct {
	pattern string
	instead string
	except  string   // a pattern of phrases in which the word is right
	in      []string // folders where it is refused; everywhere if nil
	but     []string // files and folders where it is right, each with a comment that gives the reason
}

// dialect finds the words of the terms in comments, string literals, documents, declared names and names of files.
func dialect(t *Tree) []Problem {
	return dialectIn(t, ".")
}

// dialectIn returns the findings in one file or folder; "." is the whole tree.
func dialectIn(t *Tree, place string) []Problem {
	var found []Problem
	refused := compiled()
	for _, f := range t.Files {
		if place != "." && !f.within(place) || ownWords(f) {
			continue
		}
		for _, p := range t.passages(f) {
			lower := strings.ToLower(p.text)
			for _, r := range refused {
				if r.mayMatch(lower) {
					found = append(found, r.find(f, p)...)
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return slices.Compact(found)
}

type refusal struct {
	term
	word, right *regexp.Regexp
	literals    []string // one of which is in each match, in lower case
}

func (r refusal) mayMatch(lower string) bool {
	return slices.ContainsFunc(r.literals, func(l string) bool { return strings.Contains(lower, l) })
}

func compiled() []refusal {
	var list []refusal
	for _, d := range terms() {
		parsed, err := syntax.Parse(d.pattern, syntax.Perl)
		if err != nil {
			panic(err) // a pattern of ours
		}
		r := refusal{term: d, word: expression(d.pattern), literals: literals(parsed)}
		if d.except != "" {
			r.right = expression(d.except)
		}
		list = append(list, r)
	}
	return list
}

// literals returns texts of which each match of e contains one, {""} if e has none.
func literals(e *syntax.Regexp) []string {
	switch e.Op {
	case syntax.OpLiteral:
		return []string{strings.Fields(strings.ToLower(string(e.Rune)) + " .")[0]}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(e.Sub[0])
	case syntax.OpAlternate:
		var all []string
		for _, s := range e.Sub {
			all = append(all, literals(s)...)
		}
		return all
	case syntax.OpConcat:
		best := []string{""}
		for _, s := range e.Sub {
			if l := literals(s); shortest(l) > shortest(best) {
				best = l
			}
		}
		return best
	}
	return []string{""}
}

func shortest(list []string) int {
	n := len(list[0])
	for _, s := range list {
		n = min(n, len(s))
	}
	return n
}

func expression(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`)
}

func (r refusal) find(f *File, p passage) []Problem {
	if r.in != nil && !f.within(r.in...) || f.within(r.but...) {
		return nil
	}
	var right [][]int
	if r.right != nil {
		right = r.right.FindAllStringIndex(p.text, -1)
	}
	var found []Problem
	for _, at := range r.word.FindAllStringIndex(p.text, -1) {
		if slices.ContainsFunc(right, func(w []int) bool { return w[0] <= at[0] && at[1] <= w[1] }) {
			continue
		}
		line := p.line + strings.Count(p.text[:at[0]], "\n")
		word := strings.Join(strings.Fields(p.text[at[0]:at[1]]), " ")
		if p.name != "" {
			word += " in " + p.name
		}
		found = append(found, Problem{f.Path, line, `"` + word + `": use ` + r.instead})
	}
	return found
}

// ownWords reports whether the file holds the terms themselves, samples of them, or error messages of other programs.
func ownWords(f *File) bool {
	return f.within("internal/dev/lint/dialect.go", "internal/dev/lint/dialect_terms.go", "internal/dev/lint/rules_test.go",
		"docs/compatibility.md", "internal/dev/compat/results.json")
}
