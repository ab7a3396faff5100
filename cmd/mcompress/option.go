package main

import (
	"flag"
	"strings"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

// An option is a flag of the standard library's as cli takes flags, so that one
// declaration binds a variable, documents itself and is shared with methods.
type option struct {
	*flag.Flag
	short    string
	category string
	choices  []string                  // for completion
	about    func() (*flag.Flag, bool) // the flag that help shows, and whether it does; nil for the flag itself
}

// group declares the flags of one category in help.
func group(category string, declare func(*flag.FlagSet)) []cli.Flag {
	fs := flag.NewFlagSet(category, flag.ContinueOnError)
	declare(fs)
	var list []cli.Flag
	fs.VisitAll(func(f *flag.Flag) {
		o := &option{Flag: f, category: category, short: shorts[f.Name]}
		switch e := f.Value.(type) {
		case *mcli.Enum:
			o.choices = e.Words
		case *methodChoice:
			o.choices = e.Words
		}
		list = append(list, o)
	})
	return list
}

// shorts are the flags that have a short name.
var shorts = map[string]string{"output": "o", "quiet": "q", "stages": "n"}

// String is the flag's line in help: names, a tab, what it does.
func (o *option) String() string {
	f, _ := o.shown()
	placeholder, usage := flag.UnquoteUsage(f)
	names := "--" + o.Name
	if o.short != "" {
		names = "-" + o.short + ", " + names
	}
	if !mcli.IsBool(o.Flag) {
		names += " " + strings.ToUpper(placeholder)
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" {
		usage += " (default: " + d + ")"
	}
	return names + "\t" + usage
}

// Apply adds the flag to the set that parses the command line.
func (o *option) Apply(fs *flag.FlagSet) error {
	for _, name := range o.Names() {
		fs.Var(o.Value, name, o.Usage)
	}
	return nil
}

// Names are the flag's names, the long one first.
func (o *option) Names() []string {
	if o.short == "" {
		return []string{o.Name}
	}
	return []string{o.Name, o.short}
}

// IsSet is called for required flags only, which no command has.
func (o *option) IsSet() bool { return false }

// IsVisible reports whether help shows the flag.
func (o *option) IsVisible() bool {
	_, visible := o.shown()
	return visible
}

func (o *option) shown() (*flag.Flag, bool) {
	if o.about == nil {
		return o.Flag, true
	}
	return o.about()
}

// GetCategory is the heading in help.
func (o *option) GetCategory() string { return o.category }
