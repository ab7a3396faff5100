package cli

import (
	"bufio"
	"io"

	"github.com/mcompress/mcompress/internal/bounded"
)

// A Log is the last line about each model in the JSON lines of runs.
type Log struct {
	Models []string // in the order of their first lines
	last   map[string]modelFacts
}

// maxLine is the maximum length of a line of a log in bytes.
const maxLine = 16 << 20

// Read reads JSON lines. Other lines, such as those of stderr, are left out.
func (l *Log) Read(r io.Reader) error {
	if l.last == nil {
		l.last = map[string]modelFacts{}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var f modelFacts
		if bounded.JSON(lines.Bytes(), &f) != nil || f.Event != modelEvent || f.Model == "" {
			continue
		}
		if _, known := l.last[f.Model]; !known {
			l.Models = append(l.Models, f.Model)
		}
		l.last[f.Model] = f
	}
	return lines.Err()
}
