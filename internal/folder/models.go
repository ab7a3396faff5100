package folder

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/onnx"
)

// models are the model files of a folder.
type models struct {
	parts  map[string]bool // of all models: their files
	needed map[string]bool // of copied models
	stems  []string        // of all models
	copied int
}

// models reads the structure of the models. Those that are copied are those that genai_config.json names; without that
// file all others that are not variants of a compressed model, such as NAME.METHOD.onnx of NAME.onnx.
func (f *Folder) models(entries []fs.DirEntry, compressed []string) (*models, error) {
	m := &models{parts: map[string]bool{}, needed: map[string]bool{}}
	var replaced []string
	for _, path := range compressed {
		if sameFile(filepath.Dir(path), f.from) {
			replaced = append(replaced, filepath.Base(path))
		}
	}
	named, err := f.named()
	if err != nil {
		return nil, err
	}
	isNamed := map[string]bool{}
	for _, name := range named {
		isNamed[name] = true
	}
	for _, e := range entries {
		name := e.Name()
		stem, ok := strings.CutSuffix(name, ".onnx")
		if !ok {
			continue
		}
		m.stems = append(m.stems, stem)
		variant := func(of string) bool {
			return name == of || strings.HasPrefix(name, strings.TrimSuffix(of, ".onnx")+".")
		}
		copied := !slices.Contains(replaced, name) &&
			(named != nil && isNamed[name] || named == nil && !slices.ContainsFunc(replaced, variant))
		if copied {
			m.copied++
		}
		m.addModel(f.path(name), copied)
	}
	return m, nil
}

// addModel adds the files of a model. One that is malformed is a file like others.
func (m *models) addModel(path string, copied bool) {
	names := []string{filepath.Base(path)}
	if f, err := onnx.Open(path); err == nil {
		for _, p := range f.Parts() {
			names = append(names, p.Name)
		}
		f.Close()
	}
	for _, name := range names {
		m.parts[name] = true
		m.needed[name] = m.needed[name] || copied
	}
}

// results are the ends of the names of files that describe a model, after NAME.
var results = []string{".report.", ".environment.json", ".cdx.json", ".intoto.json", ".sig", ".card.md"}

// skip reports whether a file is part of a model that is not copied, or describes a model.
func (m *models) skip(name string) bool {
	if m.parts[name] {
		return !m.needed[name]
	}
	return slices.ContainsFunc(m.stems, func(stem string) bool {
		return slices.ContainsFunc(results, func(end string) bool { return strings.HasPrefix(name, stem+end) })
	})
}

// named are the files that genai_config.json names; nil without it.
func (f *Folder) named() ([]string, error) {
	if _, err := stat(f.from, genaiConfig); err != nil {
		return nil, nil
	}
	c, err := readConfig(f.from, genaiConfig)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, v := range c.values {
		var name string
		if v.key == fileName && bounded.JSON(v.raw(c.text), &name) == nil {
			names = append(names, name)
		}
	}
	return names, nil
}
