package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A matrix has the results of all files in all runtimes.
type matrix struct {
	Versions map[string]string // of runtimes
	Files    []*file
}

// A file is a variant of a model.
type file struct {
	Variant, Model string
	Digest         string
	Forms          []string         // that the steps of the variant wrote
	Cells          map[string]*cell // by runtime
}

// The states of a cell, from worst to best.
const (
	refused = "does not load"
	fails   = "does not run"
	wrong   = "wrong"
	right   = "right"
)

// A cell is the result of a file in a runtime.
type cell struct {
	State    string
	Error    string   `json:",omitempty"` // of the runtime
	SQNR     *float64 `json:",omitempty"` // of outputs in decibels, against the reference
	Speed    float64  `json:",omitempty"` // time of the float model by time of the file, minimum of interleaved runs
	Memory   int64    `json:",omitempty"` // growth of the peak by loading and the first run, bytes
	Resident int64    `json:",omitempty"` // growth by loading, bytes; of large models
	Load     float64  `json:",omitempty"` // load average of the machine during the measurement
	Exact    bool     `json:",omitempty"` // measured on a CPU on which products of uint8 with int8 do not saturate
}

// rank orders states: a lower one is worse.
func (c *cell) rank() int { return slices.Index([]string{refused, fails, wrong, right}, c.State) }

// saturated reports whether the outputs of a variant are wrong because its products saturate on this CPU, unlike
// before.
func (v variant) saturated(before, now *cell) bool {
	return v.Saturates && now.State == wrong && before.Exact && !now.Exact
}

// The committed results: of all models, and of memory with large ones.
const (
	allResults    = "results.json"
	memoryResults = "memory.json"
)

// resultsPath is the path of committed results.
func resultsPath(name string) (string, error) {
	root, err := conform.Root()
	return filepath.Join(root, "internal", "dev", "compat", name), err
}

// readMatrix returns an empty matrix if there is no file.
func readMatrix(path string) (*matrix, error) {
	m := &matrix{Versions: map[string]string{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(text, m)
}

// write has a line for each file, so that differences can be read.
func (m *matrix) write(path string) error {
	versions, err := json.Marshal(m.Versions)
	if err != nil {
		return err
	}
	var lines [][]byte
	for _, f := range m.Files {
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	return atomicfile.Write(path, atomicfile.Access{}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "{\"Versions\": %s,\n\"Files\": [\n%s\n]}\n", versions,
			bytes.Join(lines, []byte(",\n")))
		return err
	})
}

// find returns the results of a variant of a model, nil if there are none.
func (m *matrix) find(variant, model string) *file {
	i := slices.IndexFunc(m.Files, func(f *file) bool { return f.Variant == variant && f.Model == model })
	if i < 0 {
		return nil
	}
	return m.Files[i]
}

// file returns the results of the file for measurements: without those of another content.
func (m *matrix) file(variant, model, digest string, forms []string) *file {
	f := m.find(variant, model)
	if f == nil {
		f = &file{Variant: variant, Model: model}
		m.Files = append(m.Files, f)
	}
	if f.Digest != digest {
		f.Digest, f.Cells = digest, map[string]*cell{}
	}
	f.Forms = forms
	return f
}

// arrange orders the files like the tables of variants and models and removes those that are in no table.
func (m *matrix) arrange() {
	var files []*file
	for _, v := range memoryVariants() {
		for _, model := range slices.Concat(models(), largeModels("")) {
			if f := m.find(v.Name, model.Name); f != nil {
				files = append(files, f)
			}
		}
	}
	m.Files = files
}

// drop removes the results of a runtime.
func (m *matrix) drop(runtime string) {
	for _, f := range m.Files {
		delete(f.Cells, runtime)
	}
}

// merge replaces results by new ones.
func (m *matrix) merge(from *matrix) {
	for name, version := range from.Versions {
		if m.Versions[name] != version {
			m.drop(name)
		}
		m.Versions[name] = version
	}
	for _, f := range from.Files {
		maps.Copy(m.file(f.Variant, f.Model, f.Digest, f.Forms).Cells, f.Cells)
	}
	m.arrange()
}
