package conform

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWorkerStartsAgainAfterItDied(t *testing.T) {
	Start(t)
	w := new(Worker)
	if _, err := w.Versions(); err != nil {
		t.Fatal(err)
	}
	if err := w.process.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Versions(); !errors.Is(err, errDied) {
		t.Errorf("got %v, want ErrDied", err)
	}
	if _, err := w.Versions(); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	w.process.end()
}

func TestErrorOfAnAnswerIsOneLine(t *testing.T) {
	err := Start(t).Parses("none.onnx")
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "none.onnx") {
		t.Errorf("got %v", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var out tail
	out.Write([]byte(strings.Repeat("x", 5000)))
	out.Write([]byte("the end"))
	if got := out.String(); len(got) != 2<<10 || !strings.HasSuffix(got, "xthe end") {
		t.Errorf("%d bytes that end in %q", len(got), got[len(got)-10:])
	}
}

func TestRootHoldsGoMod(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Error(err)
	}
}

func TestMissingSkipsLocallyAndFailsInCI(t *testing.T) {
	t.Setenv("MCOMPRESS_SHARED", filepath.Join(t.TempDir(), "none"))
	t.Setenv("MCOMPRESS_PYTHON", filepath.Join(t.TempDir(), "none"))
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		for name, use := range map[string]func(testing.TB){
			"Start":      func(t testing.TB) { Start(t) },
			"Shared":     func(t testing.TB) { Shared(t) },
			"ORTLibrary": func(t testing.TB) { ORTLibrary(t) },
		} {
			r := record(use)
			if r.skipped != (ci == "") || r.failed != (ci == "true") {
				t.Errorf("%s with CI=%q: skipped %v, failed %v", name, ci, r.skipped, r.failed)
			}
		}
	}
}

// A recorder is a testing.TB that notes how the test ended instead of ending it.
type recorder struct {
	testing.TB
	skipped, failed bool
}

type ended struct{}

func (r *recorder) Helper()           {}
func (r *recorder) Skip(...any)       { r.skipped = true; panic(ended{}) }
func (r *recorder) Fatal(args ...any) { r.failed = true; panic(ended{}) }

func record(use func(testing.TB)) (r *recorder) {
	r = &recorder{}
	defer func() {
		if e := recover(); e != nil && e != (ended{}) {
			panic(e)
		}
	}()
	use(r)
	return r
}
