package report

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// targetHead is the title of the choices for a target.
func targetHead(t *pass.Target) string {
	var words []string
	for _, r := range t.Runtimes {
		if r.Untested != "" {
			words = append(words, r.Title+", untested: "+r.Untested)
		} else {
			words = append(words, r.Title)
		}
	}
	if t.CPU != "" {
		words = append(words, t.CPU)
	}
	if t.StandardOps {
		words = append(words, "only operators of ONNX")
	}
	return fmt.Sprintf("Target: %s (%s)", t.Name, strings.Join(words, "; "))
}

// targetChoice is an option set by a target, or one that the user gave instead.
func targetChoice(c pass.Choice) string {
	if c.Given {
		return fmt.Sprintf("%s: %s %s was given and overrides the target: %s", c.Method, c.Option, c.Value, c.Why)
	}
	return fmt.Sprintf("%s: %s %s, because %s", c.Method, c.Option, c.Value, c.Why)
}

// target writes the options that were set for the target.
func (m *markdown) target(t *pass.Target) {
	if t == nil {
		return
	}
	m.line("### %s", prose(targetHead(t)))
	for _, c := range t.Choices {
		m.item("%s", prose(targetChoice(c)))
	}
	if len(t.Choices) == 0 {
		m.write("No option of these methods depends on the target.", nil, "\n")
	}
	m.close()
}
