package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// methodFlags are the options of a command's methods as flags; help says which method
// has which, and of those that s has too what s says.
func methodFlags(o *mcli.MethodOptions, s *sampling) []cli.Flag {
	var own, shared []cli.Flag
	for _, offer := range o.Offers() {
		if offer.Shared {
			f := &option{Flag: offer.Flag, category: "data"}
			f.Usage = s.fs.Lookup(f.Name).Usage
			shared = append(shared, f)
			continue
		}
		own = append(own, &option{Flag: offer.Flag, category: "options of methods", note: strings.Join(offer.Methods, ", ")})
	}
	return append(own, shared...)
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
