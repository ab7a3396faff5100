package cli

// A Style colors text for a Terminal, unless it is off.
type Style struct{ On bool }

func (s Style) paint(code, text string) string {
	text = Escape(text)
	if !s.On || text == "" {
		return text
	}
	return mark + code + "m" + text + mark + "0m"
}

// bold is for names.
func (s Style) bold(text string) string { return s.paint("1", text) }

// dim is for details.
func (s Style) dim(text string) string { return s.paint("2", text) }

// good is for gains and passed gates.
func (s Style) good(text string) string { return s.paint("32", text) }

// warn is for gates that passed on samples that are no independent evidence.
func (s Style) warn(text string) string { return s.paint("33", text) }

// bad is for failures.
func (s Style) bad(text string) string { return s.paint("31", text) }
