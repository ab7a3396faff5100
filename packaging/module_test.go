package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	modulepath "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestGoInstall installs the command from a module proxy, from outside of a checkout, with go install …@latest. The proxy is a folder: this
// module is packed by the rules of the Go command, other modules are those of the module cache. It is compiled again, as its path has a version, and
// without optimizations, which takes two thirds of the time: the programs of the release have them.
func TestGoInstall(t *testing.T) {
	sources, proxy := filepath.Join(t.TempDir(), "sources"), t.TempDir()
	copySources(t, sources)
	publish(t, sources, proxy)
	cache := strings.TrimSpace(output(t, exec.Command("go", "env", "GOMODCACHE")))
	download(t)
	home := t.TempDir()
	c := exec.Command("go", "install", module+"/cmd/mcompress@latest")
	c.Dir = home
	c.Env = append(os.Environ(), "GOPROXY="+fileURL(proxy)+","+fileURL(filepath.Join(cache, "cache", "download"))+",off", "GONOSUMDB=*", "GOSUMDB=off",
		"GOWORK=off", "GOMODCACHE="+filepath.Join(home, "modules"), "GOBIN="+filepath.Join(home, "bin"), "GOFLAGS=-modcacherw -trimpath -gcflags=all=-dwarf=false '-gcflags="+module+"/...=-N -l -dwarf=false'")
	output(t, c)
	compress(t, func(args ...string) *exec.Cmd { return exec.Command(filepath.Join(home, "bin", "mcompress"), args...) })
}

// publish writes a module into the folder of a proxy (the GOPROXY protocol). Files that the Go command refuses or that are too large are errors.
func publish(t *testing.T, sources, proxy string) {
	t.Helper()
	version := modulepath.Version{Path: module, Version: tag}
	mod := read(t, filepath.Join(sources, "go.mod"))
	parsed, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Replace)+len(parsed.Exclude) > 0 {
		t.Errorf("go.mod has replace or exclude directives, with which go install refuses it")
	}
	checked, err := zip.CheckDir(sources)
	if err != nil || len(checked.Invalid) > 0 || checked.SizeError != nil {
		t.Errorf("%v, %v, %v", err, checked.Invalid, checked.SizeError)
	}
	base := filepath.Join(proxy, filepath.FromSlash(module), "@v", tag)
	write(t, filepath.Join(filepath.Dir(base), "list"), []byte(tag+"\n"), 0o644)
	write(t, base+".mod", mod, 0o644)
	write(t, base+".info", fmt.Appendf(nil, `{"Version":%q}`, tag), 0o644)
	f, err := os.Create(base + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := zip.CreateFromDir(f, version, sources); err != nil {
		t.Fatal(err)
	}
}

// download puts the modules that the command needs into the module cache, as archives.
func download(t *testing.T) {
	t.Helper()
	c := exec.Command("go", "mod", "download")
	c.Dir = ".."
	output(t, c)
}

func fileURL(folder string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(folder)}).String()
}
