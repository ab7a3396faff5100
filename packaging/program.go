package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/mcompress/mcompress"

// A program is the binary of a target, with the documents that go with every copy of it.
type program struct {
	target
	binary  []byte
	modules []*dependency
	sbom    []byte
	notices []file // the licences of mcompress and of the modules in the binary
}

// program builds the binary of a target and its documents.
func (r *release) program(t target) (*program, error) {
	p := &program{target: t}
	var err error
	if p.binary, err = r.build(t); err != nil {
		return nil, err
	}
	if err := verify(t, p.binary); err != nil {
		return nil, err
	}
	if p.modules, err = r.dependencies(t); err != nil {
		return nil, err
	}
	license, err := r.read("LICENSE")
	if err != nil {
		return nil, err
	}
	p.notices = []file{{name: "LICENSE", data: license}, {name: "THIRD_PARTY_LICENSES.txt", data: notices(p.modules)}}
	p.sbom, err = r.bom(p)
	return p, err
}

// build runs go build. Neither the folder nor the state of the repository is in the result.
func (r *release) build(t target) ([]byte, error) {
	dir, err := os.MkdirTemp("", "mcompress-release-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, t.executable())
	args := append([]string{"build", "-o", path}, r.buildFlags(t)...)
	if _, err := r.command(t, "go", append(args, "./cmd/mcompress")...); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func (r *release) buildFlags(t target) []string {
	return []string{"-buildvcs=false", "-tags", t.tags(), "-ldflags", "-s -w -X " + module + "/internal/job.release=" + r.version.tag()}
}

// tags are the build tags: without ONNX Runtime, the program is static.
func (t target) tags() string {
	if t.static() {
		return "noort"
	}
	return ""
}

// command runs a program in the sources, in an environment that selects the target and nothing else, and returns its standard output.
func (r *release) command(t target, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir = r.sources
	c.Env = append(os.Environ(), "GOOS="+t.goos, "GOARCH="+t.goarch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=",
		"GOFIPS140=off", "GOWORK=off", "GOFLAGS=-mod=readonly -trimpath -gcflags=all=-dwarf=false")
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args[:1], " "), err, bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}

// A dependency is a module in the binary.
type dependency struct {
	Path, Version, Dir string
	Main               bool
	licences           []file
	ids                []string // SPDX identifiers
}

// dependencies returns the modules whose packages are in the binary, in the order of their paths, with their licences; the first is Go itself.
func (r *release) dependencies(t target) ([]*dependency, error) {
	out, err := r.command(t, "go", "list", "-deps", "-tags", t.tags(), "-json=Dir,Module", "./cmd/mcompress")
	if err != nil {
		return nil, err
	}
	goroot, err := r.goVersion(t)
	if err != nil {
		return nil, err
	}
	found := map[string]*dependency{"": goroot}
	folders := map[string][]string{"": {goroot.Dir}}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			Dir    string
			Module *dependency
		}
		if err := list.Decode(&pkg); err == io.EOF {
			return licensed(found, folders)
		} else if err != nil {
			return nil, err
		}
		if m := pkg.Module; m != nil && !m.Main {
			found[m.Path] = m
			folders[m.Path] = append(folders[m.Path], pkg.Dir)
		}
	}
}

// goVersion is the standard library and runtime, as a dependency.
func (r *release) goVersion(t target) (*dependency, error) {
	out, err := r.command(t, "go", "env", "GOVERSION", "GOROOT")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	return &dependency{Path: "std", Version: strings.TrimPrefix(lines[0], "go"), Dir: lines[1]}, nil
}
