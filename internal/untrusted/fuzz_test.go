package untrusted

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
)

// Names that are accepted are those of different files below the folder, and look like what they are; a prefix of the
// names is accepted, too.
func FuzzNames(f *testing.F) {
	hostile.Seed(f, hostile.Lines(), append(hostile.Names(), "model.onnx\nonnx/model.onnx.data\nconfig.json")...)
	f.Fuzz(func(t *testing.T, text []byte) {
		names := strings.Split(string(text), "\n")
		var err error
		oracle.Linear.Check(t, len(text), func() { err = CheckNames(names) })
		for _, name := range names {
			if at, wrong := Path("dir", name); wrong == nil {
				inside(t, at, name)
			} else if err == nil && filepath.Separator == '/' {
				t.Errorf("%q is accepted as a name, but not as a path: %v", name, wrong)
			}
		}
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, name := range names {
			inside(t, filepath.Join("dir", name), name)
			hidden := func(r rune) bool { return !unicode.IsPrint(r) }
			if seen[strings.ToLower(name)] || !utf8.ValidString(name) || strings.ContainsFunc(name, hidden) {
				t.Errorf("%q is accepted", name)
			}
			seen[strings.ToLower(name)] = true
		}
		if err := CheckNames(names[1:]); err != nil {
			t.Errorf("%q is accepted, but not without its first name: %v", names, err)
		}
	})
}

func inside(t *testing.T, at, name string) {
	t.Helper()
	if rest, err := filepath.Rel("dir", at); err != nil || !filepath.IsLocal(rest) {
		t.Errorf("%q is at %q", name, at)
	}
}

// A digest that is accepted has no characters with a meaning in paths.
func FuzzSHA256(f *testing.F) {
	hostile.Seed(f, nil, hostile.Names()...)
	f.Fuzz(func(t *testing.T, text []byte) {
		if CheckSHA256(string(text)) == nil && (len(text) != 64 || strings.Trim(string(text), "0123456789abcdef") != "") {
			t.Errorf("%q is accepted", text)
		}
	})
}
