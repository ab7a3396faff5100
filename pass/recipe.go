package pass

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// ParseRecipe reads a pipeline from YAML:
//
//	steps:
//	  - method: l1
//	    amount: 0.5
//	    skip: ["*.bias"]
//	  - method: dynamic-int8
//	target: cpu-avx2
//
// The name of a target may be left out; it is returned unchanged. Unknown methods and options are errors, and so is a
// step of an earlier stage than the step before.
func ParseRecipe(known []*Method, text []byte) (steps []Options, target string, err error) {
	var doc struct {
		Steps  []yaml.MapSlice `yaml:"steps"`
		Target string          `yaml:"target"`
	}
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.Strict()); err != nil {
		return nil, "", errors.New(strings.ReplaceAll(strings.TrimSpace(yaml.FormatError(err, false, false)), "\n", " "))
	}
	if len(doc.Steps) == 0 {
		return nil, "", errors.New("a recipe needs a list called steps, each with a method")
	}
	for i, d := range doc.Steps {
		s, err := parseStep(known, d)
		if err != nil {
			return nil, "", fmt.Errorf("step %d: %w", i+1, err)
		}
		steps = append(steps, s)
	}
	return steps, doc.Target, CheckOrder(steps)
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
			if set[key] {
				return fmt.Errorf("option %q is given twice", key)
			}
			set[key] = true
			if key == "method" {
				continue
			}
			if fs.Lookup(key) == nil {
				return fmt.Errorf("unknown option %q; options of the method are %s", key, names(fs))
			}
			if err := fs.Set(key, scalar(item.Value)); err != nil {
				return fmt.Errorf("option %q: %w", key, err)
			}
		}
		return nil
	})
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

func names(fs *flag.FlagSet) string {
	var ns []string
	fs.VisitAll(func(f *flag.Flag) { ns = append(ns, f.Name) })
	return strings.Join(ns, ", ")
}

// scalar is a YAML value as a flag's text: lists are joined by commas.
func scalar(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = fmt.Sprint(e)
	}
	return strings.Join(parts, ",")
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

// RecipeText is the recipe of steps with the values of all options, so that it reproduces a run even if defaults change.
// Empty options are omitted.
func RecipeText(steps []Options) ([]byte, error) {
	var list []yaml.MapSlice
	for _, s := range steps {
		m := yaml.MapSlice{{Key: "method", Value: s.Method().Name}}
		for _, o := range Values(s) {
			if o.Value != "" {
				m = append(m, yaml.MapItem{Key: o.Name, Value: o.Value})
			}
		}
		list = append(list, m)
	}
	return yaml.Marshal(yaml.MapSlice{{Key: "steps", Value: list}})
}
