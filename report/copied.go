package report

import (
	"fmt"
	"strings"
)

// Copied is the files of the model's folder that the result's folder has too, by name: configuration, tokenizer, other
// models.
type Copied struct {
	Files   []string `json:"files"`
	Omitted []string `json:"omitted,omitempty"` // folders, files that are too large, and links to files elsewhere
	// Stale are keys of configuration that may not describe the result: what was removed has no one number in them.
	Stale []string `json:"stale,omitempty"`
}

// Text lists the files in a line.
func (c *Copied) Text() string {
	text := strings.Join(c.Files, ", ")
	if len(c.Omitted) > 0 {
		text += fmt.Sprintf("; not copied: %s", strings.Join(c.Omitted, ", "))
	}
	if len(c.Stale) > 0 {
		text += "; check in the configuration, which may not describe the result: " + strings.Join(c.Stale, ", ")
	}
	return text
}

// copied writes the files that were copied.
func (m *markdown) copied(c *Copied) {
	if c != nil {
		m.line("Files copied from the folder of the model: %s.", prose(c.Text()))
	}
}
