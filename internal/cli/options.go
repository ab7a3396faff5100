package cli

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// MethodOptions are the options of all methods that one command offers, and those that
// were given. Which of them the chosen method has is known only when all are parsed.
type MethodOptions struct {
	Methods []*pass.Method
	Shared  func(option string) bool // the command has it too: a method without it leaves it to that; nil for none
	given   []pass.Option
	flags   [][]*flag.Flag // of each method
}

// An Offer is one option of a command's methods.
type Offer struct {
	*flag.Flag          // of the first method that has it, without a default if those of methods differ; Value records the given text
	Methods    []string // that have it; nil if all do
	Shared     bool     // not all do, and the command has it too
}

// Offers are the options in the order in which the methods declare them.
func (o *MethodOptions) Offers() []Offer {
	var offers []Offer
	at, differs := map[string]int{}, map[int]bool{}
	for k, flags := range o.declared() {
		for _, f := range flags {
			i, known := at[f.Name]
			if !known {
				i = len(offers)
				at[f.Name] = i
				offers = append(offers, Offer{Flag: o.taker(f)})
			}
			offers[i].Methods = append(offers[i].Methods, o.Methods[k].Name)
			differs[i] = differs[i] || offers[i].DefValue != f.DefValue
		}
	}
	for i := range offers {
		if differs[i] {
			offers[i].DefValue = ""
		}
		if len(offers[i].Methods) == len(o.Methods) {
			offers[i].Methods = nil
		}
		offers[i].Shared = offers[i].Methods != nil && o.shared(offers[i].Name)
	}
	return offers
}

// declared are the options of each method, which a command reads several times.
func (o *MethodOptions) declared() [][]*flag.Flag {
	if o.flags == nil {
		for _, m := range o.Methods {
			var list []*flag.Flag
			pass.Flags(m).VisitAll(func(f *flag.Flag) { list = append(list, f) })
			o.flags = append(o.flags, list)
		}
	}
	return o.flags
}

func (o *MethodOptions) taker(f *flag.Flag) *flag.Flag {
	t := *f
	t.Value = &taken{name: f.Name, bool: IsBool(f), of: o}
	return &t
}

// Given are the options that were given, in their order.
func (o *MethodOptions) Given() []pass.Option { return o.given }

// IsGiven reports whether an option was given.
func (o *MethodOptions) IsGiven(option string) bool {
	return slices.ContainsFunc(o.given, func(g pass.Option) bool { return g.Name == option })
}

// Method is the method of that name, nil if there is none.
func (o *MethodOptions) Method(name string) *pass.Method {
	for _, m := range o.Methods {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Step is the named method with the options that were given. Errors are the user's.
func (o *MethodOptions) Step(method string) (pass.Options, error) {
	if m := o.Method(method); m != nil {
		return pass.NewStep(m, o.set)
	}
	return nil, fmt.Errorf("unknown method %q; there are %s", method, And(o.names()))
}

func (o *MethodOptions) shared(option string) bool { return o.Shared != nil && o.Shared(option) }

func (o *MethodOptions) set(fs *flag.FlagSet) error {
	for _, g := range o.given {
		if fs.Lookup(g.Name) == nil {
			if o.shared(g.Name) {
				continue
			}
			return fmt.Errorf("--%s is an option of %s", g.Name, And(o.owners(g.Name)))
		}
		if err := assign(fs, g); err != nil {
			return err
		}
	}
	return nil
}

// Fill sets those of the given options that fs has, but for those of these names.
func (o *MethodOptions) Fill(fs *flag.FlagSet, but ...string) error {
	for _, g := range o.given {
		if fs.Lookup(g.Name) == nil || slices.Contains(but, g.Name) {
			continue
		}
		if err := assign(fs, g); err != nil {
			return err
		}
	}
	return nil
}

func assign(fs *flag.FlagSet, g pass.Option) error {
	if err := fs.Set(g.Name, g.Value); err != nil {
		return fmt.Errorf("invalid value %q for --%s: %w", g.Value, g.Name, err)
	}
	return nil
}

func (o *MethodOptions) names() []string {
	var ns []string
	for _, m := range o.Methods {
		ns = append(ns, m.Name)
	}
	return ns
}

func (o *MethodOptions) owners(option string) []string {
	var ns []string
	for _, m := range o.Methods {
		if pass.Flags(m).Lookup(option) != nil {
			ns = append(ns, m.Name)
		}
	}
	return ns
}

// taken is the value of a flag that records the given text, in the order of the command line.
type taken struct {
	name string
	bool bool
	of   *MethodOptions
}

func (t *taken) String() string   { return "" }
func (t *taken) IsBoolFlag() bool { return t.bool }

func (t *taken) Set(text string) error {
	t.of.given = append(t.of.given, pass.Option{Name: t.name, Value: text})
	return nil
}

// IsBool reports whether f can be given without a value.
func IsBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// And is a list in words: a, b and c.
func And(words []string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " and " + words[n]
}
