package cli

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A Terminal writes text that may contain names from files. It escapes control characters, which could move the cursor, hide text or
// change the title of a window; line breaks, tabs and the colors of a Style pass. JSON stays valid JSON of the same content.
type Terminal struct {
	w    io.Writer
	rest []byte // the start of a character whose end is in the next Write
}

// NewTerminal returns a Terminal on w.
func NewTerminal(w io.Writer) *Terminal { return &Terminal{w: w} }

// Unwrap is the underlying writer.
func (t *Terminal) Unwrap() io.Writer { return t.w }

// Write implements io.Writer.
func (t *Terminal) Write(p []byte) (int, error) {
	text := append(t.rest, p...)
	end := len(text) - unfinished(text)
	t.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(t.w, colored(escape(string(text[:end]), true))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unfinished is the number of bytes at the end of text that begin a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// mark precedes the code of a color until a Terminal replaces it by an escape sequence. It is random, so that no name has it.
var mark = rand.Text()

// colored replaces the marks of colors.
func colored(text string) string { return strings.ReplaceAll(text, mark, "\x1b[") }

// Escape escapes control characters and other invisible characters of a name, line breaks included.
func Escape(name string) string { return escape(name, false) }

func escape(text string, lines bool) string {
	if strings.IndexFunc(text, func(r rune) bool { return !visible(r, lines) || r == utf8.RuneError }) < 0 {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		switch r, size = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case visible(r, lines):
			b.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

// visible reports whether a terminal shows r as a character, or as a line break or tab where these are allowed.
func visible(r rune, lines bool) bool {
	return unicode.IsGraphic(r) || lines && (r == '\n' || r == '\t')
}
