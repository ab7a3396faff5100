package evidence

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/job"
)

// The forms of a report that people read are those of its JSON form: any other line is a mismatch, in each of them.
func TestFormsAreThoseOfTheReport(t *testing.T) {
	dir := t.TempDir()
	forms := []string{"md", "html", "intoto"}
	res, text := quantized(t, dir, job.Options{Errors: true, Reports: append([]string{"json"}, forms...)})
	rendered := func() *Result {
		r := &Result{Report: "mlp.int8.report.json"}
		if err := r.Rendered(t.Context(), Folder(dir), text); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := rendered(); !r.Matches() || len(r.Checked) != len(forms) || r.Unchecked != nil {
		t.Fatalf("%+v", r)
	}
	for _, path := range res.Reports[1:] {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write := func(b []byte) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		lines := bytes.SplitAfter(content, []byte("\n"))
		for i := 0; i < len(lines); i += 1 + len(lines)/20 { // TestDifference has every line
			edited := slices.Clone(lines)
			edited[i] = append([]byte("x"), edited[i]...)
			write(bytes.Join(edited, nil))
			if r := rendered(); len(r.Mismatches) != 1 || !strings.HasPrefix(r.Mismatches[0], filepath.Base(path)+": line ") {
				t.Errorf("%s, line %d: %q", path, i+1, r.Mismatches)
			}
		}
		write(content[:len(content)/2])
		if rendered().Matches() {
			t.Errorf("%s: half of it matches", path)
		}
		write(bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n")))
		if r := rendered(); !r.Matches() {
			t.Errorf("%s: with other ends of lines: %q", path, r.Mismatches)
		}
		write(content)
	}
	if err := os.Remove(filepath.Join(dir, "mlp.int8.environment.json")); err != nil {
		t.Fatal(err)
	}
	if r := rendered(); !r.Matches() || len(r.Unchecked) != 1 ||
		!strings.Contains(r.Unchecked[0], "the times of the run are not here") {
		t.Errorf("without its times: %+v", r)
	}
}
