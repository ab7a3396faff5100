package pass

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Options is the option struct of a method, such as quantize.DynamicInt8, and a step of a pipeline. Its zero value is
// the method with its defaults.
//
// # Tags of options
//
// An option is an exported field with a tag `flag:"name" usage:"text"`. The tags are the one definition of an option,
// from which flags, help, recipes, the record of a run in its report and docs/methods.md are made: a new option is a
// field and nothing else. Documentation of a field is for programs, and its usage for users of the command line.
//
// The word in single quotes in the usage is the placeholder of the value. Further tags are default:"value", which
// replaces the zero value; enum:"a,b" for strings; list:"yes" if a recipe may have a list; file:"yes" for paths that
// the method reads; and recipe:"no" for options that have no effect on the result, such as files that the method
// writes: a recipe cannot have them. `flag:"name,not"` is a boolean option that is on by default, and the field turns
// it off. A field is a bool, an integer, a float64, a string, a type whose pointer implements flag.Value, or a pointer
// to one of them where zero differs from the default.
//
// Embedded structs hold groups of options, such as Selection and Samples; defaults:"name=value,..." on an embedded
// field replaces defaults of its options, and names:"name=other,..." their names, or removes options that are named
// "-". Fields of which only the definition is that of other methods refer to it by SharedOptions.
type Options interface {
	Method() *Method
	// Run runs the method. The pipeline calls it on a copy with the defaults in place.
	Run(context.Context, *Step) error
	// Selected is the selection of weights; embedding Selection implements it.
	Selected() Selection
}

// A Referenced is an option struct whose result is compared with another model than the source, such as the teacher of
// a student.
type Referenced interface {
	Reference() string // path of the model; empty for the source
}

// A Budgeted is an option struct with a memory budget of the process.
type Budgeted interface {
	Budget() int64 // in bytes; 0 for none
}

// A checker is an option struct that validates its values before the pipeline runs. Defaults are in place.
type checker interface{ Check() error }

// NewStep makes m's option struct; set, which may be nil, gives options their values.
func NewStep(m *Method, set func(*flag.FlagSet) error) (Options, error) {
	o := m.New()
	if set != nil {
		if err := set(flagsOf(o)); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	if _, err := resolved(o); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return o, nil
}

// With returns a copy of o with another value of an option; o itself if it has no such option.
func With(o Options, name, value string) (Options, error) {
	p := reflect.New(reflect.Indirect(reflect.ValueOf(o)).Type())
	p.Elem().Set(reflect.Indirect(reflect.ValueOf(o)))
	changed := p.Interface().(Options)
	fs := flagsOf(changed)
	if fs.Lookup(name) == nil {
		return o, nil
	}
	return changed, fs.Set(name, value)
}

// Assignments returns a function that sets options to the values of words such as block=64; a word without a value sets
// a boolean.
func Assignments(words []string) func(*flag.FlagSet) error {
	return func(fs *flag.FlagSet) error {
		for _, w := range words {
			name, value, given := strings.Cut(w, "=")
			if !given {
				value = "true"
			}
			if fs.Lookup(name) == nil {
				return fmt.Errorf("no option %q", name)
			}
			if err := fs.Set(name, value); err != nil {
				return fmt.Errorf("option %q: %w", name, err)
			}
		}
		return nil
	}
}

// Flags are m's options with their defaults, for help and for flags of commands.
func Flags(m *Method) *flag.FlagSet { return flagsOf(m.New()) }

// Declare declares the options of a struct, to which group points, on fs.
func Declare(fs *flag.FlagSet, group any) {
	for _, f := range fieldsOf(reflect.ValueOf(group).Elem()) {
		fs.Var(f, f.name, f.usage)
		fs.Lookup(f.name).DefValue = f.fallback()
	}
}

// Words are the values of the enum of an option; nil if it has none.
func Words(f *flag.Flag) []string {
	if f, ok := f.Value.(*field); ok {
		return f.enum
	}
	return nil
}

// Values are all options of o with the values in force, sorted by name.
func Values(o Options) []Option {
	var list []Option
	flagsOf(o).VisitAll(func(f *flag.Flag) { list = append(list, f.Value.(*field).option()) })
	return list
}

// An Option is one option of a step as text.
type Option struct {
	Name, Value    string
	File           bool // the path of a file or folder that the step reads; with List several paths
	List           bool // the value is a list, separated by commas
	OutsideRecipes bool // not a part of recipes
}

// flagsOf are the options of o as flags, which set o if it is a pointer.
func flagsOf(o Options) *flag.FlagSet {
	fs := flag.NewFlagSet(o.Method().Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	Declare(fs, settable(o))
	return fs
}

// settable is o if it is a pointer, and a pointer to a copy of it otherwise.
func settable(o Options) Options {
	v := reflect.ValueOf(o)
	if v.Kind() == reflect.Pointer {
		return o
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface().(Options)
}

// given reports whether option name of o has a value of its own.
func given(o Options, name string) bool {
	f := flagsOf(o).Lookup(name)
	return f != nil && f.Value.(*field).given()
}

// resolved is a copy of o with the defaults in place of zero values.
func resolved(o Options) (Options, error) {
	if o == nil {
		return nil, errors.New("a step without options")
	}
	v := reflect.ValueOf(o)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, errors.New("a step without options")
		}
		v = v.Elem()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	// On a copy: a zero value of the caller's struct remains one that Preset and targets may set.
	if err := fill(p.Elem()); err != nil {
		return nil, err
	}
	// With the defaults in place: a combination may be invalid because of one.
	if c, ok := p.Interface().(checker); ok {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	return p.Interface().(Options), nil
}

// fill replaces zero values by defaults, and returns an error for a value that is not in the enum of its option.
func fill(v reflect.Value) error {
	for _, f := range fieldsOf(v) {
		if f.given() {
			if text := f.String(); f.enum != nil && !slices.Contains(f.enum, text) {
				return OptionErrorf("--%s: %w", f.name, f.unknown(text))
			}
			continue
		}
		if f.def == "" {
			continue
		}
		if err := f.Set(f.def); err != nil {
			panic(fmt.Sprintf("default of --%s: %v", f.name, err))
		}
	}
	return nil
}
