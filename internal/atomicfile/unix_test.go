//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Only regular files are replaced: devices, pipes, sockets, folders and symbolic links are unchanged.
func TestSpecialFilesAreRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "t") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, create := range map[string]func(path string) error{
		"a folder":        func(path string) error { return os.Mkdir(path, 0o700) },
		"a named pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":        makeDevice,
		"a symbolic link": func(path string) error { return os.Symlink("elsewhere", path) },
		"a socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "_"))
		if err := create(path); err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		want := path + ": the output would replace " + name + "; name another file"
		if err := Write(path, Access{}, text("content")); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v", name, err)
		}
	}
}

// A special file that appears during the run is not replaced either.
func TestSpecialFilesThatAppearLaterAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	s := &Set{}
	if err := s.WriteFile(path, text("content")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *TargetError
	if err := errors.Join(s.Publish(path), s.Close()); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	if st, err := os.Lstat(path); err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("the pipe was replaced: %v", err)
	}
}

// umask returns the umask, which belongs to the process: the tests that set it are not parallel.
func umask(t *testing.T, mask int) {
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		umask        int
		source, want fs.FileMode
	}{
		{0o022, 0o644, 0o644}, {0o022, 0o666, 0o644}, {0o077, 0o644, 0o600}, {0o002, 0o664, 0o664},
		{0o022, 0o600, 0o600}, {0o022, 0o640, 0o640}, {0, 0o400, 0o600}, {0o027, 0o666, 0o640},
	} {
		dir := t.TempDir()
		umask(t, c.umask)
		source, path := filepath.Join(dir, "source"), filepath.Join(dir, "result")
		if err := errors.Join(os.WriteFile(source, nil, 0o600), os.Chmod(source, c.source)); err != nil {
			t.Fatal(err)
		}
		a, err := Like(source)
		if err == nil {
			err = Write(path, a, text("content"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode() != c.want {
			t.Errorf("umask %03o, source %v: got %v, want %v: %v", c.umask, c.source, st.Mode(), c.want, err)
		}
	}
}

// A group that cannot read the source cannot read the result.
func TestGroupOfTheSource(t *testing.T) {
	const other = 12345
	dir := t.TempDir()
	umask(t, 0o022)
	var sources []string
	for _, gid := range []int{other, other + 1} {
		path := filepath.Join(dir, "source") + string(rune('a'+len(sources)))
		if err := os.WriteFile(path, nil, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, -1, gid); err != nil {
			t.Skipf("not root: %v", err)
		}
		sources = append(sources, path)
	}
	for n, want := range map[int]fs.FileMode{1: 0o640, 2: 0o600} { // two groups: neither may read what is of both
		a, err := Like(sources[:n]...)
		path := filepath.Join(dir, "result")
		if err == nil {
			err = Write(path, a, text("content"))
		}
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil || st.Mode() != want || n == 1 && group(st) != other {
			t.Errorf("%d sources: got %v of group %d: %v", n, st.Mode(), group(st), err)
		}
	}
}

// childFolder is the environment variable by which a child process finds its folder, childSteps the number of steps
// before it is killed.
const (
	childFolder = "ATOMICFILE_TEST_FOLDER"
	childSteps  = "ATOMICFILE_TEST_STEPS"
)

// A process is killed before each file is written and before each is renamed: whenever the last file is there, the
// others are, and the next process removes what is left.
func TestKilledAtEachStep(t *testing.T) {
	seen := map[string]bool{}
	for steps := 0; ; steps++ {
		dir := t.TempDir()
		c := exec.Command(os.Args[0], "-test.run=^TestChildThatIsKilled$")
		c.Env = append(os.Environ(), childFolder+"="+dir, childSteps+"="+strings.Repeat("x", steps))
		out, err := c.CombinedOutput()
		killed := err != nil && c.ProcessState.ExitCode() < 0
		if err != nil && !killed {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := NewFolder(dir); err != nil { // sweeps; its own folder stays locked
			t.Fatal(err)
		}
		var left []string
		for name := range strings.SplitSeq(names(t, dir), " ") {
			if !strings.HasPrefix(name, prefix) {
				left = append(left, name)
			}
		}
		if n := len(strings.Fields(names(t, dir))) - len(left); n != 1 {
			t.Errorf("after %d steps: temporary folders left: %s", steps, names(t, dir))
		}
		seen[strings.Join(left, " ")] = true
		if !killed {
			break
		}
	}
	for _, want := range []string{"", "data", "data report", "data model report"} {
		if !seen[want] {
			t.Errorf("no kill left %q", want)
		}
		delete(seen, want)
	}
	if len(seen) > 0 {
		t.Errorf("also left: %v", seen)
	}
}

func TestChildThatIsKilled(t *testing.T) {
	dir := os.Getenv(childFolder)
	if dir == "" {
		t.Skip("a part of TestKilledAtEachStep")
	}
	steps := len(os.Getenv(childSteps))
	step := func() {
		if steps--; steps < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s := &Set{renaming: step}
	for _, name := range []string{"data", "model", "report"} {
		step()
		if err := s.WriteFile(filepath.Join(dir, name), text(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Publish(filepath.Join(dir, "model")); err != nil {
		t.Fatal(err)
	}
	step()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A folder without its lock is empty or not ours.
func TestOnlyFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	parent := t.TempDir()
	held, err := NewFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(parent, prefix+"1"+suffix)
	foreign := filepath.Join(parent, prefix+"2"+suffix)
	unlocked := filepath.Join(parent, prefix+"3"+suffix)
	piped := filepath.Join(parent, prefix+"4"+suffix)
	named := filepath.Join(parent, "mcompress-5"+suffix)
	for _, dir := range []string{dead, foreign, unlocked, piped, named} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	spooled := filepath.Join(parent, spool+"6")
	for _, path := range []string{filepath.Join(dead, lockName), filepath.Join(dead, "model"),
		filepath.Join(foreign, "file"), spooled} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(piped, lockName), 0o600); err != nil {
		t.Fatal(err)
	}
	Sweep(parent)
	for path, want := range map[string]bool{held.Path: true, dead: false, foreign: true, unlocked: false, piped: true,
		named: true, spooled: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(held.Path); err == nil {
		t.Error("a closed folder is left")
	}
}
