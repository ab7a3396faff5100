package cli

// A Style colors text for a terminal, unless it is off.
type Style struct{ On bool }

func (s Style) paint(code, text string) string {
	if !s.On || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold is for names.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim is for details.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Good is for gains and passed gates.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Bad is for failures.
func (s Style) Bad(text string) string { return s.paint("31", text) }
