package pass

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mcompress/mcompress/internal/bounded"
)

// A Recipe is a pipeline: steps in order, and settings that hold for all of them.
type Recipe struct {
	Steps         []Options
	Target        string // of ParseTarget; empty for the default one
	StripMetadata bool   // write no doc strings and metadata but those of the model itself
	KeepIR        bool   // keep the IR version of the model
	DataFiles     int    // external data files of the result; 0 for one where it is needed
}

// MaxRecipe is the maximum size of a recipe in bytes.
const MaxRecipe = bounded.MaxYAML

// ParseRecipe reads a pipeline from YAML:
//
//	steps:
//	  - method: l1
//	    amount: 0.5
//	    skip: ["*.bias"]
//	  - method: dynamic-int8
//	target: ort-1.20,cpu-avx2
//	strip-metadata: true
//	keep-ir: true
//	data-files: 16
//
// Settings may be left out; a target is returned unchanged. Unknown methods and options are errors, and so is a
// step of an earlier stage than the step before, or an option that writes a file.
func ParseRecipe(known []*Method, text []byte) (*Recipe, error) {
	var doc struct {
		Steps     []yaml.MapSlice `yaml:"steps"`
		Target    string          `yaml:"target"`
		Strip     bool            `yaml:"strip-metadata"`
		KeepIR    bool            `yaml:"keep-ir"`
		DataFiles int             `yaml:"data-files"`
	}
	if err := bounded.StrictYAML(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Steps) == 0 {
		return nil, errors.New("a recipe needs a list called steps, each with a method")
	}
	if err := CheckDataFiles(doc.DataFiles); err != nil {
		return nil, fmt.Errorf("data-files: %w", err)
	}
	r := &Recipe{Target: doc.Target, StripMetadata: doc.Strip, KeepIR: doc.KeepIR, DataFiles: doc.DataFiles}
	for i, d := range doc.Steps {
		s, err := parseStep(known, d)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		r.Steps = append(r.Steps, s)
	}
	return r, CheckOrder(r.Steps)
}

// maxDataFiles is the maximum number of external data files: they are all open at a time.
const maxDataFiles = 512

// CheckDataFiles returns an error for a number of data files that a result cannot have.
func CheckDataFiles(n int) error {
	if n < 0 || n > maxDataFiles {
		return fmt.Errorf("%d is not a number of files from 1 to %d", n, maxDataFiles)
	}
	return nil
}

func parseStep(known []*Method, d yaml.MapSlice) (Options, error) {
	m, err := method(known, d)
	if err != nil {
		return nil, err
	}
	return NewStep(m, func(fs *flag.FlagSet) error {
		set := map[string]bool{}
		for _, item := range d {
			key := fmt.Sprint(item.Key)
			// Lists would be appended, and other options replaced without a word.
			if set[key] {
				return fmt.Errorf("option %q is given twice", key)
			}
			set[key] = true
			if key == "method" {
				continue
			}
			if err := setOption(m, fs, key, item.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// setOption sets one option of a step to its value in YAML.
func setOption(m *Method, fs *flag.FlagSet, key string, value any) error {
	option := fs.Lookup(key)
	if option == nil {
		return fmt.Errorf("unknown option %q; options of the method are %s", key, names(fs))
	}
	// A recipe may come from elsewhere: it cannot name files that the run would overwrite.
	if option.Value.(*field).outsideRecipes {
		return fmt.Errorf(
			"option %q is not supported in recipes, which write no files but the outputs; use mcompress %s --%s", key, m.Command,
			key)
	}
	text, err := scalar(value, option.Value.(*field).list)
	if err == nil {
		err = fs.Set(key, text)
	}
	if err != nil {
		return fmt.Errorf("option %q: %w", key, err)
	}
	return nil
}

func method(known []*Method, d yaml.MapSlice) (*Method, error) {
	for _, item := range d {
		if item.Key != "method" {
			continue
		}
		for _, m := range known {
			if m.Name == item.Value {
				return m, nil
			}
		}
		return nil, fmt.Errorf("unknown method %q", fmt.Sprint(item.Value))
	}
	return nil, errors.New("method is missing")
}

// names lists the options that a recipe can have.
func names(fs *flag.FlagSet) string {
	var ns []string
	fs.VisitAll(func(f *flag.Flag) {
		if !f.Value.(*field).outsideRecipes {
			ns = append(ns, f.Name)
		}
	})
	return strings.Join(ns, ", ")
}

// scalar is a YAML value as a flag's text: lists are joined by commas.
func scalar(v any, list bool) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", errors.New("it has no value")
	case map[string]any, yaml.MapSlice:
		return "", errors.New("it has a mapping as its value")
	case []any:
		if !list {
			return "", errors.New("it has a list as its value")
		}
		parts := make([]string, len(v))
		for i, e := range v {
			var err error
			if parts[i], err = scalar(e, false); err != nil {
				return "", fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return strings.Join(parts, ","), nil
	}
	return fmt.Sprint(v), nil
}

// paths returns the value of an option of files with other paths.
func (o Option) paths(file func(path string) string) string {
	if !o.List {
		return file(o.Value)
	}
	paths := strings.Split(o.Value, ",")
	for i, p := range paths {
		paths[i] = file(p)
	}
	return strings.Join(paths, ",")
}

// CheckOrder returns an error for a step of an earlier stage than the step before.
func CheckOrder(steps []Options) error {
	for i := 1; i < len(steps); i++ {
		a, b := steps[i-1].Method(), steps[i].Method()
		if b.Stage < a.Stage {
			return OptionErrorf("step %d: %s (%s) cannot follow %s (%s); move it up", i+1, b.Name, b.Stage, a.Name, a.Stage)
		}
	}
	return nil
}

// Text is the recipe as YAML with the values of all options, so that it reproduces a run even if defaults change. Empty
// options and those that cannot be in recipes are omitted. file, which may be nil, replaces paths of files that steps
// read.
func (r *Recipe) Text(file func(path string) string) ([]byte, error) {
	var list []yaml.MapSlice
	for _, s := range r.Steps {
		m := yaml.MapSlice{{Key: "method", Value: s.Method().Name}}
		for _, o := range Values(s) {
			switch {
			case o.Value == "" || o.OutsideRecipes:
				continue
			case o.File && file != nil:
				o.Value = o.paths(file)
			}
			m = append(m, yaml.MapItem{Key: o.Name, Value: o.Value})
		}
		list = append(list, m)
	}
	doc := yaml.MapSlice{{Key: "steps", Value: list}}
	if r.Target != "" {
		doc = append(doc, yaml.MapItem{Key: "target", Value: r.Target})
	}
	if r.StripMetadata {
		doc = append(doc, yaml.MapItem{Key: "strip-metadata", Value: true})
	}
	if r.KeepIR {
		doc = append(doc, yaml.MapItem{Key: "keep-ir", Value: true})
	}
	if r.DataFiles > 0 {
		doc = append(doc, yaml.MapItem{Key: "data-files", Value: r.DataFiles})
	}
	return yaml.Marshal(doc)
}
