package main

import (
	"flag"
	"fmt"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// A methodChoice is the flag that names a method. Help is about the named method; without one, about the flags that all methods have.
type methodChoice struct {
	mcli.Enum
	given bool
}

// Set accepts the name of a method.
func (c *methodChoice) Set(name string) error {
	c.given = true
	return c.Enum.Set(name)
}

// methodFlags are the options of the methods of a command as flags; those that the command has, too, among the common ones, have their usage.
func methodFlags(offers []mcli.Offer, common []cli.Flag) []cli.Flag {
	var own, shared []cli.Flag
	for _, offer := range offers {
		if offer.Shared {
			f := flagNamed(common, offer.Name)
			offer.Flag.Usage = f.flag.Usage
			shared = append(shared, newOption(offer.Flag, f.Category))
			continue
		}
		own = append(own, newOption(offer.Flag, "options of methods"))
	}
	return append(own, shared...)
}

// limitHelp lets help about a named method show the options of that method alone, with its defaults, and help without one no options of
// particular methods.
func (c *methodChoice) limitHelp(flags []cli.Flag, ms []*pass.Method, offers []mcli.Offer) {
	particular := map[string]bool{}
	for _, offer := range offers {
		particular[offer.Name] = offer.Methods != nil && !offer.Shared
	}
	for _, f := range flags {
		f := f.(*option)
		f.help = func() (*flag.Flag, bool) {
			if !c.given {
				return f.flag, !particular[f.Name]
			}
			for _, m := range ms {
				if m.Name == c.Value {
					own := pass.Flags(m).Lookup(f.Name)
					return own, own != nil
				}
			}
			return f.flag, true
		}
	}
}

// describe lists methods for help.
func describe(heading string, ms []*pass.Method) string {
	width := 0
	for _, m := range ms {
		width = max(width, len(m.Name))
	}
	text := heading
	for _, m := range ms {
		text += fmt.Sprintf("\n  %-*s  %s", width, m.Name, m.Doc)
	}
	return text
}

func names(ms []*pass.Method) []string {
	var ns []string
	for _, m := range ms {
		ns = append(ns, m.Name)
	}
	return ns
}
