package doctest

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

var update = flag.Bool("update", false, "write the present output of the commands into README.md and docs")

func root(t *testing.T) string {
	t.Helper()
	folder, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readIfThere is the text of a file that -update may have to make.
func readIfThere(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// checkout returns a folder that looks like a fresh checkout of the repository, so that outputs
// next to the fixtures are written there.
func checkout(t *testing.T) string {
	t.Helper()
	from, to := root(t), t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "fixtures" || e.Name() == ".git" {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	copyFixtures(t, from, to)
	return to
}

// copyFixtures leaves out outputs of the tool.
func copyFixtures(t *testing.T, from, to string) {
	t.Helper()
	for _, pattern := range []string{"fixtures/*", "fixtures/recipes/*"} {
		files, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			copyFixture(t, from, f, to)
		}
	}
}

func copyFixture(t *testing.T, from, file, to string) {
	t.Helper()
	name, err := filepath.Rel(from, file)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := os.Stat(file); err != nil || s.IsDir() || outputs.MatchString(name) {
		return
	}
	target := filepath.Join(to, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, []byte(read(t, file)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A shell runs commands in a folder. They install programs into a folder on their PATH.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T, dir string) *shell {
	t.Helper()
	bin := installed(t)
	return &shell{dir, append(plain(), "GOBIN="+bin, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))}
}

// plain is an environment in which a build is called (devel), whatever commit it is of: the
// version is written into outputs, and sizes would depend on its length.
func plain() []string {
	return append(os.Environ(), "NO_COLOR=1", "GOFLAGS="+flags())
}

func flags() string { return strings.TrimSpace(os.Getenv("GOFLAGS") + " -buildvcs=false") }

// atHome is the shell for Go's own commands: they run in the repository, whose packages are in its cache, and start
// programs in the folder.
func (s *shell) atHome(t *testing.T) *shell {
	t.Helper()
	return &shell{root(t), append(slices.Clip(s.env), "GOFLAGS="+flags()+" '-exec=env -C "+s.dir+"'")}
}

// run returns what the script printed on both streams, and its exit code.
func (s *shell) run(t *testing.T, script string) (string, int) {
	t.Helper()
	c := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	c.Dir, c.Env = s.dir, s.env
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// installed is a folder with the program in it, built once.
func installed(t *testing.T) string {
	t.Helper()
	bin, err := install()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

var install = sync.OnceValues(func() (string, error) {
	from, err := conform.Root()
	if err != nil {
		return "", err
	}
	bin, err := os.MkdirTemp("", "mcompress-doctest-*")
	if err != nil {
		return "", err
	}
	c := exec.Command("go", "install", "./cmd/mcompress")
	c.Dir, c.Env, c.Stderr = from, append(plain(), "GOBIN="+bin), os.Stderr
	return bin, c.Run()
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if bin, err := install(); err == nil {
		_ = os.RemoveAll(bin)
	}
	os.Exit(code)
}
