package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A textTable is lines of cells, aligned by columns. Cells may be colored.
type textTable struct {
	indent string
	align  string // a letter for each column, r for numbers: "lrrl"
	rows   [][]string
}

// add adds a line; missing cells are empty.
func (t *textTable) add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Escape(cell)
	}
	t.rows = append(t.rows, row)
}

// write writes the lines with two spaces between columns and none after the last.
func (t *textTable) write(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		line := t.indent
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-width(cell))
			if i < len(t.align) && t.align[i] == 'r' {
				line += gap + cell + "  "
			} else {
				line += cell + gap + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := fmt.Fprint(w, b.String())
	return err
}

func (t *textTable) widths() []int {
	var ws []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(ws) {
				ws = append(ws, 0)
			}
			ws[i] = max(ws[i], width(cell))
		}
	}
	return ws
}

// width is the number of visible characters of s.
func width(s string) int {
	n := 0
	for {
		at := strings.Index(s, mark)
		if at < 0 {
			return n + utf8.RuneCountInString(s)
		}
		n += utf8.RuneCountInString(s[:at])
		s = s[at:]
		s = s[strings.IndexByte(s, 'm')+1:]
	}
}
