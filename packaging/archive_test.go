package main

import (
	"archive/tar"
	"compress/gzip"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unpacked returns the folder of the archive for this platform, unpacked by tar.
func unpacked(t *testing.T, libc string) string {
	t.Helper()
	archive := only(t, "mcompress_*_"+runtime.GOOS+"_"+runtime.GOARCH+libc+".tar.gz")
	dir := t.TempDir()
	output(t, exec.Command("tar", "-xzf", archive, "-C", dir))
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"))
}

// libcs are the programs for this platform: on Linux two.
func libcs() []string {
	if runtime.GOOS == "linux" {
		return []string{"", "_glibc"}
	}
	return []string{""}
}

// compress runs a command that prints its version and quantizes a copy of a fixture, and requires both.
func compress(t *testing.T, command func(args ...string) *exec.Cmd, options ...string) {
	t.Helper()
	if got := output(t, command("version")); !strings.Contains(got, "mcompress "+tag+" ") {
		t.Errorf("version: %q", got)
	}
	model := filepath.Join(t.TempDir(), "mlp.onnx")
	write(t, model, read(t, filepath.Join("..", "fixtures", "mlp.onnx")), 0o644)
	if got := output(t, command(append([]string{"quantize", "--quiet", model}, options...)...)); !strings.Contains(got, "138 KiB") {
		t.Errorf("quantize: %q", got)
	}
	if len(read(t, strings.TrimSuffix(model, ".onnx")+".dynamic-int8.onnx")) < 100<<10 {
		t.Error("the model was not written")
	}
}

func TestArchiveRuns(t *testing.T) {
	for _, libc := range libcs() {
		folder := unpacked(t, libc)
		compress(t, func(args ...string) *exec.Cmd { return exec.Command(filepath.Join(folder, "mcompress"), args...) })
		page := string(read(t, filepath.Join(folder, "man", "man1", "mcompress.1")))
		if !strings.HasPrefix(page, ".TH MCOMPRESS 1") || !strings.Contains(page, roffed(tag)) {
			t.Errorf("the manual page begins with %q", page[:min(len(page), 80)])
		}
		output(t, exec.Command("bash", "-n", filepath.Join(folder, "completions", "mcompress.bash")))
		for _, name := range []string{"_mcompress", "mcompress.fish"} {
			if len(read(t, filepath.Join(folder, "completions", name))) == 0 {
				t.Errorf("%s is empty", name)
			}
		}
	}
}

func roffed(text string) string { return strings.ReplaceAll(text, "-", `\-`) }

// Times, owners and permissions are those of the release, not of the machine.
func TestArchiveEntries(t *testing.T) {
	f, err := os.Open(only(t, "mcompress_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("the gzip header has name %q and time %v", z.Name, z.ModTime)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		mode := map[bool]int64{true: 0o755, false: 0o644}[filepath.Base(h.Name) == "mcompress"]
		if h.ModTime.Unix() != 1700000000 || h.Uid != 0 || h.Uname != "" || h.Mode != mode {
			t.Errorf("%s: time %v, owner %d %q, mode %o", h.Name, h.ModTime, h.Uid, h.Uname, h.Mode)
		}
	}
}

// Every module in a binary has its licence in the notices, and a component in the SBOM.
func TestNoticesCoverModules(t *testing.T) {
	for _, libc := range libcs() {
		folder := unpacked(t, libc)
		info, err := buildinfo.ReadFile(filepath.Join(folder, "mcompress"))
		if err != nil {
			t.Fatal(err)
		}
		text, sbom := string(read(t, filepath.Join(folder, "THIRD_PARTY_LICENSES.txt"))), string(read(t, filepath.Join(folder, "mcompress.cdx.json")))
		if len(info.Deps) < 15 {
			t.Fatalf("%d modules in the binary", len(info.Deps))
		}
		modules := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
		for _, m := range info.Deps {
			modules = append(modules, m.Path+" "+m.Version)
		}
		for _, m := range modules {
			identifiers, texts := strings.Contains(text, "\n- "+m+": "), strings.Count(text, strings.Repeat("=", 80)+"\n"+m+": ")
			if !identifiers || texts == 0 {
				t.Errorf("%s: in the list %v, %d texts", m, identifiers, texts)
			}
			if !strings.Contains(sbom, `"pkg:golang/`+strings.Replace(m, " ", "@", 1)+`"`) {
				t.Errorf("%s is not in the SBOM", m)
			}
		}
		if got := strings.Count(sbom, `"type": "library"`); got != len(modules) {
			t.Errorf("the SBOM has %d modules, the binary %d", got, len(modules))
		}
	}
}

// A module whose files have no known licence stops the release.
func TestModuleWithoutLicence(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "LICENSE"), []byte("All rights reserved.\n"), 0o644)
	modules := func() map[string]*dependency {
		return map[string]*dependency{"example.com/m": {Path: "example.com/m", Version: "v1.0.0", Dir: dir}}
	}
	if list, err := licensed(modules(), map[string][]string{"example.com/m": {dir}}); err == nil {
		t.Errorf("got %v", list)
	}
	// Licences of a folder within the module, and of a folder of licences, are found.
	mit := read(t, filepath.Join("..", "LICENSE"))
	write(t, filepath.Join(dir, "internal", "vendored", "LICENSE.txt"), mit, 0o644)
	write(t, filepath.Join(dir, "THIRD_PARTY_LICENSES", "Other"), []byte("other terms"), 0o644)
	list, err := licensed(modules(), map[string][]string{"example.com/m": {filepath.Join(dir, "internal", "vendored")}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list[0].licences {
		names = append(names, f.name)
	}
	if want := []string{"LICENSE", "THIRD_PARTY_LICENSES/Other", "internal/vendored/LICENSE.txt"}; !slices.Equal(names, want) || list[0].ids[0] != "Apache-2.0" {
		t.Errorf("got %q, %q", names, list[0].ids)
	}
}

var update = flag.Bool("update", false, "write the size of the binary into README.md")

// TestSizeInReadme compares the size of the binary with README.md, to 1 MiB.
func TestSizeInReadme(t *testing.T) {
	path := filepath.Join("..", "README.md")
	before, rest, _ := strings.Cut(string(read(t, path)), "<!-- size -->")
	text, after, _ := strings.Cut(rest, " MiB<!-- /size -->")
	written, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(unpacked(t, libcs()[len(libcs())-1]), "mcompress"))
	if err != nil {
		t.Fatal(err)
	}
	mib := float64(info.Size()) / (1 << 20)
	switch {
	case mib > written-1 && mib < written+1:
	case *update:
		write(t, path, fmt.Appendf(nil, "%s<!-- size -->%.0f MiB<!-- /size -->%s", before, mib, after), 0o644)
	default:
		t.Errorf("the binary has %.1f MiB, README.md has %.0f (go -C packaging test -run Size -update)", mib, written)
	}
}
