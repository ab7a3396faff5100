package main

import (
	"flag"
	"strings"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

// An option is a flag of package flag as a flag of cli, so that one declaration binds a variable, documents itself and is shared with
// methods.
type option struct {
	cli.GenericFlag
	flag *flag.Flag
	help func() (f *flag.Flag, visible bool) // the flag that help describes, and whether it does
}

func newOption(f *flag.Flag, category string) *option {
	o := &option{GenericFlag: cli.GenericFlag{Name: f.Name, Category: category, Value: f.Value}, flag: f}
	if short := shorts[f.Name]; short != "" {
		o.Aliases = []string{short}
	}
	o.help = func() (*flag.Flag, bool) { return f, true }
	return o
}

// shorts are the short names of flags.
var shorts = map[string]string{"output": "o", "quiet": "q", "stages": "n", "number": "n"}

// group declares the flags of one category in help.
func group(category string, declare func(*flag.FlagSet)) []cli.Flag {
	fs := flag.NewFlagSet(category, flag.ContinueOnError)
	declare(fs)
	var list []cli.Flag
	fs.VisitAll(func(f *flag.Flag) { list = append(list, newOption(f, category)) })
	return list
}

// String returns the flag's line in help: names, a tab, usage and default.
func (o *option) String() string {
	f, _ := o.help()
	placeholder, usage := flag.UnquoteUsage(f)
	names := "--" + o.Name
	for _, short := range o.Aliases {
		names = "-" + short + ", " + names
	}
	if !mcli.IsBool(f) {
		names += " " + strings.ToUpper(placeholder)
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" {
		usage += " (default: " + d + ")"
	}
	return names + "\t" + usage
}

// IsVisible reports whether help has the flag.
func (o *option) IsVisible() bool {
	_, visible := o.help()
	return visible
}
