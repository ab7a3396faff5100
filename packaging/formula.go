package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed formula.rb
var formulaText string

// formula writes the formula of Homebrew, which names the archives for macOS and Linux by their checksums. A release of other platforms only has
// none.
func (r *release) formula() error {
	sums := map[string]string{}
	for key, t := range map[string]target{
		"macosARM": {goos: "darwin", goarch: "arm64"}, "macosIntel": {goos: "darwin", goarch: "amd64"},
		"linuxARM": {goos: "linux", goarch: "arm64", libc: "glibc"}, "linuxIntel": {goos: "linux", goarch: "amd64", libc: "glibc"},
	} {
		data, err := os.ReadFile(filepath.Join(r.out, t.name(r.version)+".tar.gz"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		sums[key] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	page, err := template.New("formula").Option("missingkey=error").Parse(formulaText)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]any{"Version": r.version.semver(), "Module": module, "Sums": sums}); err != nil {
		return err
	}
	return r.write("mcompress.rb", b.Bytes())
}
