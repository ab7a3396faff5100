package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for name, want := range map[string]string{
		"encoder.layer.0/MatMul":     "encoder.layer.0/MatMul",
		"größe → 大きさ · 🙂":            "größe → 大きさ · 🙂",
		"\x1b]0;title\a":             `\u001b]0;title\u0007`,
		"a\rb\x00c\nd\te\x7f":        `a\u000db\u0000c\u000ad\u0009e\u007f`,
		"\u009b31m":                  `\u009b31m`,
		"\x9b31m\xff":                `\x9b31m\xff`,
		"\u202egnp.exe\u200b\u2028":  `\u202egnp.exe\u200b\u2028`,
		"\U000e0001":                 `\udb40\udc01`,
		`C:\models\u001b`:            `C:\models\u001b`,
		"replacement \ufffd remains": "replacement \ufffd remains",
	} {
		if got := Escape(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// Line breaks and tabs of the text pass, also where a character is split between two calls.
func TestTerminal(t *testing.T) {
	text := "größe\t→ \x1b[2J\r\n\xc3 end\n"
	for split := range text {
		var b strings.Builder
		w := NewTerminal(&b)
		for _, part := range []string{text[:split], text[split:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got, want := b.String(), "größe\t→ \\u001b[2J\\u000d\n\\xc3 end\n"; got != want {
			t.Errorf("split at %d: got %q, want %q", split, got, want)
		}
	}
}

// Colors pass, escape sequences of a name in color do not, even if they are colors.
func TestTerminalColors(t *testing.T) {
	var b strings.Builder
	table := &textTable{}
	table.add(Style{On: true}.bad("a\x1b[31mb"), "\x1b[32mc", "d\ne")
	table.add("12345678901", "c")
	if err := table.write(NewTerminal(&b)); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "\x1b[31ma\\u001b[31mb\x1b[0m  \\u001b[32mc  d\\u000ae\n12345678901   c\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTerminalKeepsJSON(t *testing.T) {
	want := "\x1b]0;\a \u009b \u202e \U000e0001 \x7f\r\n"
	var b strings.Builder
	if err := json.NewEncoder(NewTerminal(&b)).Encode(want); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got != want {
		t.Errorf("got %q from %s, %v", got, b.String(), err)
	}
	if i := strings.IndexFunc(b.String(), func(r rune) bool { return !visible(r, true) }); i >= 0 {
		t.Errorf("%s: there is a control character at %d", b.String(), i)
	}
}
