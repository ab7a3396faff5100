package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The manual page has each command with its flags, and no line of a text is a request to roff.
func TestManHasCommandsAndFlags(t *testing.T) {
	code, page, stderr := call("man")
	if code != exitDone || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, c := range newTool(nil, nil).app().Commands {
		_, section, found := strings.Cut(page, "\n.SS mcompress "+c.Name+" ")
		if !found {
			t.Errorf("no section of %s", c.Name)
		}
		section, _, _ = strings.Cut(section, "\n.SS ")
		for _, f := range c.VisibleFlags() {
			if flag := `\-\-` + roff(f.Names()[0]); f.Names()[0] != "help" && !strings.Contains(section, flag) {
				t.Errorf("%s: no %s", c.Name, flag)
			}
		}
	}
	for line := range strings.Lines(page) {
		if macro, _, _ := strings.Cut(line, " "); strings.HasPrefix(line, ".") &&
			!strings.Contains(".TH .SH .SS .TP .PP .nf .fi .B .I .BR .RI", strings.TrimSpace(macro)) {
			t.Errorf("%q is a request", line)
		}
	}
	if got, want := roff(".x\n'y\\z --a"), "\\&.x\n\\&'y\\ez \\-\\-a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// groff, where it is installed, accepts the page without a warning.
func TestManIsValid(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	_, page, _ := call("man")
	c := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
	c.Stdin = strings.NewReader(page)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
