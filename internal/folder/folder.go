package folder

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/pass"
)

// The files of configuration. A folder with one of them is opened as a whole: by onnxruntime-genai, or by transformers and Optimum.
const (
	genaiConfig = "genai_config.json"
	config      = "config.json"
)

// maxSize is the size in bytes above which a file is not copied unless a copied model needs it: weights of other frameworks are larger,
// tokenizers and configuration are not.
const maxSize = 64 << 20

// A Folder is the files that are copied with a model.
type Folder struct {
	Copied  []string // names, also of those that are already there
	Omitted []string // names of files that are too large, and of folders

	// Intervals are the keys of configuration about every n-th layer, which Write leaves as they are although layers were removed.
	Intervals []string

	from, to      string
	model, result string          // names of files
	alone         bool            // no other model is copied or compressed
	there         map[string]bool // names in to
}

// Has reports whether a model is in a folder with configuration.
func Has(model string) bool {
	for _, name := range []string{genaiConfig, config} {
		if st, err := os.Stat(filepath.Join(filepath.Dir(model), name)); err == nil && st.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Open lists the files that are copied to the folder of result, the compressed model: regular files, and links to them, which are not
// hidden, too large, or part of a model; and models that are not among the compressed ones. It is an error if a different file of the
// name exists there. Nil if result is in the model's folder.
func Open(model, result string, compressed []string) (*Folder, error) {
	f := &Folder{
		from: filepath.Dir(model), to: filepath.Dir(result), model: filepath.Base(model), result: filepath.Base(result), there: map[string]bool{},
	}
	if sameFile(f.from, f.to) {
		return nil, nil
	}
	entries, err := os.ReadDir(f.from)
	if err != nil {
		return nil, err
	}
	m, err := f.models(entries, compressed)
	if err != nil {
		return nil, err
	}
	f.alone = m.copied+len(compressed) == 1
	for _, e := range entries {
		if err := f.add(e.Name(), m); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Files lists the files that a model needs besides its own, if its folder has configuration: those that Open would copy, and other models
// only if the configuration names them together with this one.
func Files(model string) ([]string, error) {
	if !Has(model) {
		return nil, nil
	}
	f := &Folder{from: filepath.Dir(model), model: filepath.Base(model)}
	entries, err := os.ReadDir(f.from)
	if err != nil {
		return nil, err
	}
	named, err := f.named()
	if err != nil {
		return nil, err
	}
	var alone []string // models of which no other one is needed
	for _, e := range entries {
		if name := e.Name(); name == f.model || strings.HasSuffix(name, ".onnx") && !slices.Contains(named, f.model) {
			alone = append(alone, f.path(name))
		}
	}
	m, err := f.models(entries, alone)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := f.list(e.Name(), m); err != nil {
			return nil, err
		}
	}
	return f.Copied, nil
}

// add lists a file and checks its place.
func (f *Folder) add(name string, m *models) error {
	n := len(f.Copied)
	if err := f.list(name, m); err != nil || len(f.Copied) == n {
		return err
	}
	return f.check(name)
}

// list adds a file to Copied or Omitted, if it is not left out.
func (f *Folder) list(name string, m *models) error {
	st, err := os.Stat(filepath.Join(f.from, name)) // follows links: the cache of Hugging Face consists of them
	switch {
	case strings.HasPrefix(name, ".") || m.skip(name) || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular() || st.Size() > maxSize && !m.needed[name]:
		f.Omitted = append(f.Omitted, name)
		return nil
	}
	f.Copied = append(f.Copied, name)
	return nil
}

// check reports an error if another file of the name exists.
func (f *Folder) check(name string) error {
	at := filepath.Join(f.to, name)
	if err := atomicfile.Check(at); err != nil {
		return err
	}
	same, err := f.equal(name, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !same:
		return pass.OptionErrorf("%s: exists and is not that of the model's folder; name another folder with --output", at)
	}
	f.there[name] = true
	return nil
}

// equal reports whether the file equals the one at the given path, configuration also except for what follows from compression.
func (f *Folder) equal(name, at string) (bool, error) {
	if isConfig(name) {
		want, err := readConfig(f.path(name))
		if err != nil {
			return false, err
		}
		got, err := readConfig(at)
		if err != nil {
			return false, err
		}
		if names := got.externalModels(); names != nil {
			text, err := want.withExternalData(names)
			if err != nil {
				return false, err
			}
			if text != nil {
				if want, err = parse(text); err != nil {
					return false, err
				}
			}
		}
		section := want.section(f.model)
		return want.equal(got) && (section == nil || got.names(section, f.model) || got.names(section, f.result)), nil
	}
	return equalFiles(f.path(name), at)
}

// Paths are the copied files in the model's folder.
func (f *Folder) Paths() []string {
	var paths []string
	for _, name := range f.Copied {
		paths = append(paths, f.path(name))
	}
	return paths
}

func (f *Folder) path(name string) string { return filepath.Join(f.from, name) }

// Write adds the files to a set. Configuration names the result, the number of its layers, and other numbers that changed.
func (f *Folder) Write(set *atomicfile.Set, removed []pass.RemovedLayers, values []pass.ConfigValue) error {
	for _, name := range f.Copied {
		var err error
		switch {
		case isConfig(name):
			err = f.writeConfig(set, name, removed, values)
		case !f.there[name]:
			err = f.copy(set, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) copy(set *atomicfile.Set, name string) error {
	in, err := os.Open(f.path(name))
	if err != nil {
		return err
	}
	defer in.Close()
	return set.WriteFile(filepath.Join(f.to, name), func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// writeConfig edits the configuration. If it is there already, because another model of the folder was compressed, only the section of
// this model changes.
func (f *Folder) writeConfig(set *atomicfile.Set, name string, removed []pass.RemovedLayers, values []pass.ConfigValue) error {
	c, err := readConfig(f.path(name))
	if err != nil {
		return err
	}
	section := c.section(f.model)
	text := c.renamed(section, f.model, f.result)
	for _, l := range removed {
		if section == nil && !f.alone {
			break // the layers may be those of another model
		}
		if text, err = withoutLayers(text, section, l); err != nil {
			return err
		}
		f.Intervals = append(f.Intervals, c.intervals(section)...)
	}
	if section != nil || f.alone {
		if text, err = withValues(text, section, values); err != nil {
			return err
		}
	}
	slices.Sort(f.Intervals)
	f.Intervals = slices.Compact(f.Intervals)
	at := filepath.Join(f.to, name)
	if f.there[name] {
		if text, err = merged(at, text, section, f.alone); err != nil || text == nil {
			return err
		}
	}
	return set.WriteFile(at, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// merged is the configuration in a file with the section of another one; nil if that changes nothing.
func merged(path string, text []byte, section []string, alone bool) ([]byte, error) {
	there, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	with, err := parse(text)
	if err != nil {
		return nil, err
	}
	if section == nil && !alone {
		return nil, nil
	}
	v, _ := with.at(section)
	out := there.replaced(func(o value) ([]byte, bool) { return v.raw(text), slices.Equal(o.path, section) })
	if bytes.Equal(out, there.text) {
		return nil, nil
	}
	return out, nil
}

func isConfig(name string) bool { return name == genaiConfig || name == config }

func sameFile(a, b string) bool {
	sa, err := os.Stat(a)
	if err != nil {
		return false
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}

// equalFiles compares the content of two files.
func equalFiles(a, b string) (bool, error) {
	fa, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	x, y := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, errA := io.ReadFull(fa, x)
		m, errB := io.ReadFull(fb, y)
		if !slices.Equal(x[:n], y[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return errors.Is(errA, errB), endless(errA)
		}
	}
}

// endless is err unless it is the end of a file.
func endless(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
