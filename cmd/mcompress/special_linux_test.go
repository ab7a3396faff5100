package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/mcompress/mcompress/pass"
)

// occupants are what may be at the path of an output and is never replaced, as errors call it.
var occupants = []struct {
	what string
	add  func(path string) error
}{
	{"a named pipe", func(path string) error { return unix.Mkfifo(path, 0o600) }},
	{"a device", func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) }},
	{"a socket", func(path string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return l.Close()
	}},
	{"a folder", func(path string) error { return os.Mkdir(path, 0o755) }},
	{"a symbolic link", func(path string) error {
		return errors.Join(os.WriteFile(path+".target", []byte("content"), 0o644),
			os.Symlink(filepath.Base(path)+".target", path))
	}},
	{"a symbolic link", func(path string) error { return os.Symlink("missing", path) }},
}

// Every file that a command writes is refused where something else than a regular file is, which is unchanged, and
// nothing else is written.
func TestSpecialFilesAreNotReplaced(t *testing.T) {
	eachWriter(t, 0o644, func(t *testing.T, file string, args []string) {
		for _, o := range occupants {
			if o.what == "a folder" && slices.Contains(args, file) && slices.Contains(args, "-o") &&
				args[slices.Index(args, "-o")+1] == file {
				continue // the result gets its default name in the folder
			}
			refuses(t, file, o.add, args, exitUsage, file+": the output would replace "+o.what+"; name another file")
		}
	})
}

// Every folder for output is refused where there is something else.
func TestSpecialFilesAreNoFolders(t *testing.T) {
	eachCommand(t, 0o644, folderWriters, func(t *testing.T, folder string, args []string) {
		for _, o := range occupants {
			if o.what != "a folder" {
				refuses(t, folder, o.add, args, exitIO, folder)
			}
		}
	})
}

// folderWriters are command lines with a folder that each writes files to.
var folderWriters = []writer{
	{"out", "quantize mlp.onnx cnn.onnx -o out/"},
	{"out", "quantize mlp.onnx -o out.onnx --report-dir out"},
	{"out", "sparse pruned.onnx -o out.onnx --export out"},
	{"out", "split mlp.onnx --output out"},
	{"out", "plan -n 2 -o out -- quantize mlp.onnx"},
	{"out", "pull dir:stored --output out"},
}

// refuses adds something at path, runs a command, and checks that it ends with the exit code and one line that contains
// text, and changes nothing.
func refuses(t *testing.T, path string, add func(string) error, args []string, want int, text string) {
	t.Helper()
	if err := add(path); err != nil {
		if os.Geteuid() != 0 && err == unix.EPERM {
			return // only root makes devices
		}
		t.Fatal(err)
	}
	before := listing(t)
	was, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(args...)
	if code != want || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, text) {
		t.Errorf("%v: exit code %d, %s", was.Mode(), code, stderr)
	}
	if is, err := os.Lstat(path); err != nil || is.Mode() != was.Mode() || !os.SameFile(is, was) {
		t.Errorf("%v was replaced: %v", was.Mode(), err)
	}
	if was.Mode()&os.ModeSymlink != 0 {
		if b, err := os.ReadFile(path); err == nil && string(b) != "content" {
			t.Errorf("the target of the link was replaced")
		}
	}
	if after := listing(t); after != before {
		t.Errorf("%v: files before: %s\nafter: %s", was.Mode(), before, after)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// Each flag that names an output is in a command line of writers or folderWriters, and so is each command that has one.
func TestEveryOutputFlagIsTested(t *testing.T) {
	lines := ""
	for _, w := range slices.Concat(writers, folderWriters) {
		lines += "\n" + strings.ReplaceAll(w.args, " -o ", " --output ") + " "
	}
	check := func(name string) {
		if !strings.Contains(lines, " --"+name+" ") {
			t.Errorf("no command line has --%s", name)
		}
	}
	for _, c := range newTool(nil, nil).app().Commands {
		if outputs := outputFlags(c); len(outputs) > 0 && !strings.Contains(lines, "\n"+c.Name+" ") {
			t.Errorf("no command line of %s", c.Name)
		} else {
			for _, name := range outputs {
				check(name)
			}
		}
	}
	for _, m := range methods {
		for _, o := range pass.Values(m.New()) {
			if usage := pass.Flags(m).Lookup(o.Name).Usage; o.OutsideRecipes && strings.Contains(usage, "'file'") {
				check(o.Name)
			}
		}
	}
}

func outputFlags(c *cli.Command) []string {
	var names []string
	for _, f := range c.Flags {
		if o, ok := f.(*option); ok {
			if _, ok := o.Value.(outPath); ok {
				names = append(names, o.Name)
			}
		}
	}
	return names
}
