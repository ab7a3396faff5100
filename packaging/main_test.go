package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// tag is the version of the release that the tests install.
const tag = "v1.2.3-rc.1"

// dist is the folder of a release for this platform, made once.
var dist string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "mcompress-packaging-*")
	if err != nil {
		panic(err)
	}
	dist = filepath.Join(folder, "dist")
	code := 1
	if out, err := releaseCommand("..", dist).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, ".ci/release: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// releaseCommand makes a release for this platform from the sources in a folder.
func releaseCommand(sources, out string) *exec.Cmd {
	c := exec.Command(filepath.Join(sources, ".ci", "release"), tag, out, runtime.GOOS+"/"+runtime.GOARCH)
	c.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	return c
}

// TestReleaseIsReproducible makes the release again, from a copy of the sources in another folder, with another umask, time zone, locale and flags
// of Go.
func TestReleaseIsReproducible(t *testing.T) {
	sources, again := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "again")
	copySources(t, sources)
	c := releaseCommand(sources, again)
	script := c.Args
	c.Args = append([]string{"bash", "-c", `umask 077 && exec "$@"`, "bash"}, script...)
	c.Path = "/bin/bash"
	c.Env = append(c.Env, "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "GOFLAGS=-race=false", "GOAMD64=v3", "CGO_ENABLED=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, second := digests(t, dist), digests(t, again)
	if len(first) < 9 {
		t.Errorf("%d files, want 9 for one platform", len(first))
	}
	for name, sum := range first {
		if second[name] != sum {
			t.Errorf("%s differs", name)
		}
	}
	if len(second) != len(first) {
		t.Errorf("%d files, at first %d", len(second), len(first))
	}
}

// copySources copies the files that git tracks or would track.
func copySources(t *testing.T, to string) {
	t.Helper()
	list := output(t, exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join("..", name))
		if err != nil || info.IsDir() {
			continue // deleted, or a link to a folder
		}
		write(t, filepath.Join(to, name), read(t, filepath.Join("..", name)), info.Mode().Perm())
	}
}

// digests are the SHA-256 of the files below a folder.
func digests(t *testing.T, folder string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(folder, path)
			sums[name] = fmt.Sprintf("%x", sha256.Sum256(read(t, path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestChecksumsCoverAllFiles(t *testing.T) {
	listed := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(dist, "SHA256SUMS")))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	actual := digests(t, dist)
	delete(actual, "SHA256SUMS")
	for name, sum := range actual {
		if listed[name] != sum {
			t.Errorf("%s: listed with %q, has %s", name, listed[name], sum)
		}
	}
	if len(listed) != len(actual) {
		t.Errorf("%d files are listed, there are %d", len(listed), len(actual))
	}
}

func TestVersions(t *testing.T) {
	for tag, want := range map[string][2]string{
		"v1.2.3":          {"1.2.3", "1.2.3"},
		"v0.10.0-alpha.1": {"0.10.0-alpha.1", "0.10.0a1"},
		"v1.0.0-beta.12":  {"1.0.0-beta.12", "1.0.0b12"},
		"v1.2.3-rc.1":     {"1.2.3-rc.1", "1.2.3rc1"},
	} {
		v, err := parseVersion(tag)
		if got := [2]string{v.semver(), v.pep440()}; err != nil || got != want || v.tag() != tag {
			t.Errorf("%s: got %q, %v, want %q", tag, got, err, want)
		}
	}
	for _, tag := range []string{"", "1.2.3", "v1.2", "v01.2.3", "v1.2.3-dev", "v1.2.3-rc1", "v1.2.3+build", "v1.2.3\n"} {
		if v, err := parseVersion(tag); err == nil {
			t.Errorf("%q: got %v, want an error", tag, v)
		}
	}
}

func TestSelectedPlatforms(t *testing.T) {
	list, err := selected([]string{"linux/amd64", "darwin/arm64"})
	if err != nil || len(list) != 3 {
		t.Errorf("got %v, %v, want two programs for Linux and one for macOS", list, err)
	}
	if list, err := selected([]string{"plan9/amd64"}); err == nil {
		t.Errorf("got %v of a platform without packages", list)
	}
}

// A binary for another platform, or one that needs the C library although the target is static, is refused.
func TestVerifyRefusesOtherBinaries(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the release for this platform has no ELF binaries")
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	static, glibc := unpacked(t, ""), unpacked(t, "_glibc")
	for _, c := range []struct {
		target target
		folder string
		want   bool
	}{
		{target{goos: "linux", goarch: runtime.GOARCH}, static, true},
		{target{goos: "linux", goarch: runtime.GOARCH, libc: "glibc"}, glibc, true},
		{target{goos: "linux", goarch: runtime.GOARCH}, glibc, false},
		{target{goos: "linux", goarch: runtime.GOARCH, libc: "glibc"}, static, false},
		{target{goos: "linux", goarch: other}, static, false},
		{target{goos: "darwin", goarch: runtime.GOARCH}, static, false},
		{target{goos: "windows", goarch: runtime.GOARCH}, static, false},
	} {
		if err := verify(c.target, read(t, filepath.Join(c.folder, "mcompress"))); (err == nil) != c.want {
			t.Errorf("%s as %s: got %v", filepath.Base(c.folder), c.target, err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// output is the standard output of a command.
func output(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

// require returns the path of a tool. In CI a missing tool is an error.
func require(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			path, err = filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	missing(t, "not installed: "+strings.Join(names, ", "))
	return ""
}

func missing(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// only returns the one file of the release whose name matches.
func only(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dist, pattern))
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.Contains(p, "_glibc.") != strings.Contains(pattern, "glibc") })
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s: %q, %v", pattern, paths, err)
	}
	return paths[0]
}
