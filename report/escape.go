package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible escapes invisible characters and those that affect the surrounding text: control
// characters, line ends, marks of writing direction, invalid UTF-8.
func visible(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, name[i])
		case !unicode.IsGraphic(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// An inline is Markdown within a line. Text of a report becomes one by prose or code alone, which escape it; the methods
// of markdown accept nothing else, so that none of them can write such text as it is.
type inline string

// markup is the characters with a meaning in Markdown or in HTML within it.
const markup = "\\`*_{}[]<>#!|&~$"

// prose is text in which nothing is markup. An underscore within a word is none.
func prose(s string) inline {
	runes := []rune(visible(s))
	var b strings.Builder
	for i, r := range runes {
		inWord := r == '_' && i > 0 && i+1 < len(runes) && word(runes[i-1]) && word(runes[i+1])
		if strings.ContainsRune(markup, r) && !inWord {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return inline(b.String())
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// code is a name as a code span, also within a table. Code spans have no escapes, so
// that a name with markup becomes an element with character references.
func code(name string) inline {
	name = visible(name)
	if name == "" {
		return "(no name)"
	}
	if !strings.ContainsAny(name, "`|\\<>&") && strings.TrimSpace(name) == name {
		return inline("`" + name + "`")
	}
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(markup, r) || r == ' ' {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return inline("<code>" + b.String() + "</code>")
}

// inScope is a tensor's name after its subgraph or function.
func inScope(scope, name string) inline {
	if scope == "" {
		return code(name)
	}
	return prose(scope) + " " + code(name)
}

// fenced is a block of code, its fence longer than any run of backticks in it.
func fenced(language, text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = visible(line)
	}
	text = strings.Join(lines, "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + text + "\n" + fence + "\n"
}
