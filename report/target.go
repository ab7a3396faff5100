package report

import (
	"fmt"

	"github.com/mcompress/mcompress/pass"
)

// targetHead is what heads the choices for a target.
func targetHead(t *pass.Target) string { return fmt.Sprintf("Target: %s (%s)", t.Name, t.CPU) }

// targetChoice is a choice in a sentence.
func targetChoice(c pass.Choice) string {
	if c.Given {
		return fmt.Sprintf("%s: %s %s was given, which the target does not ask for: %s", c.Method, c.Option, c.Value, c.Why)
	}
	return fmt.Sprintf("%s: %s %s, because %s", c.Method, c.Option, c.Value, c.Why)
}

// target writes what options were chosen for.
func (m *markdown) target(t *pass.Target) {
	if t == nil {
		return
	}
	m.line("### %s", prose(targetHead(t)))
	for _, c := range t.Choices {
		fmt.Fprintf(m, "- %s\n", prose(targetChoice(c)))
	}
	if len(t.Choices) == 0 {
		m.WriteString("It decides nothing about these methods.\n")
	}
	m.WriteByte('\n')
}
