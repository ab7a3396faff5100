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

// The files of configuration. A folder with one of them is opened as a whole: by onnxruntime-genai, or by transformers
// and Optimum.
const (
	genaiConfig = "genai_config.json"
	config      = "config.json"
)

// maxSize is the size in bytes above which a file is not copied unless a copied model needs it: weights of other
// frameworks are larger, tokenizers and configuration are not.
const maxSize = 64 << 20

// A Folder is the files that are copied with a model.
type Folder struct {
	Copied  []string // names, also of those that are already there
	Omitted []string // names of files that are too large, and of folders

	// Stale are the keys of configuration that Write leaves as they are although they may not describe the result.
	Stale []string

	from, to      string
	model, result string          // names of files
	onlyModel     bool            // no other model is copied or compressed
	existing      map[string]bool // names in to
}

// onnxFolder is the name of the folder of models in a folder with configuration, as transformers.js and the Hub have
// it.
const onnxFolder = "onnx"

// Root is the folder with the configuration of a model: its own, or the one above its folder "onnx"; "" where neither
// has configuration.
func Root(model string) string {
	dir := filepath.Dir(model)
	if hasConfig(dir) {
		return dir
	}
	if abs, err := filepath.Abs(dir); err == nil && filepath.Base(abs) == onnxFolder && hasConfig(filepath.Dir(abs)) {
		return filepath.Join(dir, "..")
	}
	return ""
}

func hasConfig(dir string) bool {
	for _, name := range []string{genaiConfig, config} {
		if st, err := stat(dir, name); err == nil && st.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Open lists the files of the model's Root that are copied to the folder of result, the compressed model, or to the one
// above it if both are in a folder "onnx": regular files, and links to them, which are not hidden, too large, or part
// of a model; the files of modules that modules.json names; and models next to the configuration that are not among the
// compressed ones. It is an error if a different file of the name exists there. Nil if there is no configuration, or if
// it is in that folder.
func Open(model, result string, compressed []string) (*Folder, error) {
	root, to := Root(model), filepath.Dir(result)
	if root == "" {
		return nil, nil
	}
	if abs, err := filepath.Abs(to); err == nil && !sameFile(root, filepath.Dir(model)) &&
		filepath.Base(abs) == onnxFolder {
		to = filepath.Dir(abs)
	}
	return openFrom(root, to, model, result, compressed)
}

// openFrom lists the files that are copied from one folder to another.
func openFrom(from, to, model, result string, compressed []string) (*Folder, error) {
	f := &Folder{
		from:     from,
		to:       to,
		model:    filepath.Base(model),
		result:   filepath.Base(result),
		existing: map[string]bool{},
	}
	if sameFile(f.from, f.to) {
		return nil, nil
	}
	dir := filepath.Dir(model)
	apart := !sameFile(from, dir)
	if apart { // models are in another folder, and are not copied
		var err error
		if compressed, err = modelsOf(from); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(f.from)
	if err != nil {
		return nil, err
	}
	m, err := f.models(entries, compressed)
	if err != nil {
		return nil, err
	}
	f.onlyModel = m.copied+len(compressed) == 1
	if apart {
		if f.onlyModel, err = hasOneModel(dir, f.model); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if err := f.addFile(e.Name(), m); err != nil {
			return nil, err
		}
	}
	names, err := f.modules()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := f.checkPlace(name); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// modelsOf are the paths of the models of a folder.
func modelsOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var models []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".onnx") {
			models = append(models, filepath.Join(dir, e.Name()))
		}
	}
	return models, err
}

// hasOneModel reports whether a folder has no models but variants of the given one.
func hasOneModel(dir, model string) (bool, error) {
	models, err := modelsOf(dir)
	name := func(path string) string { return withoutVariant(strings.TrimSuffix(filepath.Base(path), ".onnx")) }
	return !slices.ContainsFunc(models, func(m string) bool { return name(m) != name(model) }), err
}

// variants are the ends of the names of a model's variants, as transformers.js has them.
var variants = []string{
	"_fp16",
	"_q4",
	"_q4f16",
	"_int8",
	"_uint8",
	"_quantized",
	"_bnb4",
	"_q2",
	"_q2f16",
	"_q1",
	"_q1f16",
	"_merged",
}

// withoutVariant is the name of the model of which stem may be a variant, such as model_q4, or a result, such as
// model.weight-int4.
func withoutVariant(stem string) string {
	stem, _, _ = strings.Cut(stem, ".")
	for again := true; again; {
		again = false
		for _, end := range variants {
			if s, ok := strings.CutSuffix(stem, end); ok {
				stem, again = s, true
			}
		}
	}
	return stem
}

// Files lists the files of root, the Root of a model, that the model needs besides its own: those that Open would copy,
// and other models only if the configuration names them together with this one. None where there is no root. A link
// among them is a *LinkError: what is published are files of the folder alone.
func Files(root, model string) ([]string, error) {
	if root == "" {
		return nil, nil
	}
	f := &Folder{from: root, model: filepath.Base(model)}
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
	if _, err := f.modules(); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(f.Copied, f.Omitted) {
		if st, err := os.Lstat(f.path(name)); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			return nil, &LinkError{f.path(name)}
		}
	}
	return f.Copied, nil
}

// addFile lists a file and checks its place.
func (f *Folder) addFile(name string, m *models) error {
	n := len(f.Copied)
	if err := f.list(name, m); err != nil || len(f.Copied) == n {
		return err
	}
	return f.checkPlace(name)
}

// list adds a file to Copied or Omitted, if it is not left out.
func (f *Folder) list(name string, m *models) error {
	var link *LinkError
	st, err := stat(f.from, name)
	switch {
	case strings.HasPrefix(name, ".") || m.skip(name) || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.As(err, &link):
		f.Omitted = append(f.Omitted, name)
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

// checkPlace reports an error if another file of the name exists.
func (f *Folder) checkPlace(name string) error {
	at := filepath.Join(f.to, name)
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if st, err := os.Lstat(filepath.Join(f.to, dir)); err == nil && !st.IsDir() {
			return pass.OptionErrorf(
				"%s: exists and is not a folder; name another folder with --output",
				filepath.Join(f.to, dir),
			)
		}
	}
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
		return pass.OptionErrorf(
			"%s: exists and is not that of the model's folder; name another folder with --output",
			at,
		)
	}
	f.existing[name] = true
	return nil
}

// equal reports whether the file equals the one at the given path, configuration also except for what follows from
// compression.
func (f *Folder) equal(name, at string) (bool, error) {
	if isConfig(name) {
		want, err := readConfig(f.from, name)
		if err != nil {
			return false, err
		}
		got, err := readConfig(f.to, name)
		if err != nil {
			return false, err
		}
		// The file that is there may have the entries that variants of the same model added.
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
	return f.equalFiles(name, at)
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

// Write adds the files to a set. Configuration names the result, and its numbers follow the removed layers and the
// changed values.
func (f *Folder) Write(set *atomicfile.Set, removed []pass.RemovedLayers, values []pass.ConfigValue) error {
	for _, name := range f.Copied {
		var err error
		switch {
		case isConfig(name):
			err = f.writeConfig(set, name, removed, values)
		case !f.existing[name]:
			err = f.copy(set, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) copy(set *atomicfile.Set, name string) error {
	in, err := open(f.from, name)
	if err != nil {
		return err
	}
	defer in.Close()
	if dir := filepath.Dir(name); dir != "." {
		if err := set.MakeDir(filepath.Join(f.to, dir)); err != nil {
			return err
		}
	}
	return set.WriteFile(filepath.Join(f.to, name), func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// writeConfig edits the configuration. If it is there already, because another model of the folder was compressed, only
// the section of this model changes.
func (f *Folder) writeConfig(
	set *atomicfile.Set,
	name string,
	removed []pass.RemovedLayers,
	values []pass.ConfigValue,
) error {
	c, err := readConfig(f.from, name)
	if err != nil {
		return err
	}
	section := c.section(f.model)
	text := c.renamed(section, f.model, f.result)
	// Each change is found in the text that the one before has left: the places of values move.
	for _, of := range changes(removed, values) {
		c, err := parse(text)
		if err != nil {
			return err
		}
		a := c.adapt(section, f.model, of)
		f.Stale = append(f.Stale, a.stale...)
		// config.json of several models does not say which of them it describes: an edit for one could be wrong for
		// the others.
		if section == nil && !f.onlyModel {
			f.Stale = append(f.Stale, a.edited...) // of this model or of another one
			continue
		}
		text = a.result()
	}
	slices.Sort(f.Stale)
	f.Stale = slices.Compact(f.Stale)
	at := filepath.Join(f.to, name)
	if f.existing[name] {
		if text, err = merged(f.to, name, text, section, f.onlyModel); err != nil || text == nil {
			return err
		}
	}
	return set.WriteFile(at, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// merged is the configuration in a file with the section of another one; nil if that changes nothing.
func merged(dir, name string, text []byte, section []string, alone bool) ([]byte, error) {
	there, err := readConfig(dir, name)
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
	v, ok := with.valueAt(section)
	if !ok {
		return nil, nil // in a list
	}
	out := there.replaced(func(o *value) ([]byte, bool) { return v.raw(text), o.isAt(section) })
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

// equalFiles compares the content of a file with that of the one at a path.
func (f *Folder) equalFiles(name, at string) (bool, error) {
	fa, err := open(f.from, name)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := os.Open(at)
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
