package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A manifest is a package.json. Fields are in the order in which npm's documentation lists them.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	Keywords     []string          `json:"keywords,omitempty"`
	License      string            `json:"license"`
	Files        []string          `json:"files"`
	Bin          map[string]string `json:"bin,omitempty"`
	Repository   map[string]string `json:"repository"`
	Optional     map[string]string `json:"optionalDependencies,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	PreferUnplug bool              `json:"preferUnplugged,omitempty"` // Yarn does not run a program in an archive
}

func (r *release) manifest(name, description string) manifest {
	return manifest{Name: name, Version: r.version.semver(), Description: description, License: "Apache-2.0", Files: []string{"*"},
		Repository: map[string]string{"type": "git", "url": "git+https://" + module + ".git"}}
}

// npm writes the package with the program for one platform, on which that of the launcher depends optionally.
func (r *release) npm(p *program) error {
	m := r.manifest("@mcompress/"+p.target.npm, "mcompress for "+p.target.npm+", installed by the package mcompress")
	system, cpu, _ := strings.Cut(p.target.npm, "-")
	m.OS, m.CPU, m.PreferUnplug = []string{system}, []string{cpu}, true
	return r.writeNPM("mcompress-"+p.target.npm, m, append(slices.Clip(p.notices),
		file{name: "bin/" + p.executable(), mode: 0o755, data: p.binary}, file{name: "mcompress.cdx.json", data: p.sbom}))
}

// launcher writes the npm package mcompress, whose script runs the program of the platform's package.
func (r *release) launcher(programs []*program) error {
	m := r.manifest("mcompress", "Compresses ONNX models by quantization, pruning and sparse storage, and accounts for every byte")
	m.Keywords = []string{"onnx", "quantization", "pruning"}
	m.Bin, m.Engines = map[string]string{"mcompress": "bin/mcompress.js"}, map[string]string{"node": ">=18"}
	m.Optional = map[string]string{}
	for _, t := range targets() {
		if t.npm != "" {
			m.Optional["@mcompress/"+t.npm] = r.version.semver()
		}
	}
	script, err := r.read("packaging/npm/bin/mcompress.js")
	if err != nil {
		return err
	}
	readme, err := r.read("packaging/README.md")
	if err != nil {
		return err
	}
	return r.writeNPM("mcompress", m, append(slices.Clip(programs[0].notices),
		file{name: "bin/mcompress.js", mode: 0o755, data: script}, file{name: "README.md", data: readme}))
}

func (r *release) writeNPM(name string, m manifest, files []file) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return err
	}
	entries := []file{{name: "package/package.json", data: b.Bytes()}}
	for _, f := range files {
		f.name = "package/" + f.name
		entries = append(entries, f)
	}
	data, err := tarGzip(entries, r.epoch)
	if err != nil {
		return err
	}
	return r.write("npm/"+name+"-"+r.version.semver()+".tgz", data)
}
