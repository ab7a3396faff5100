package main

import (
	_ "embed"
	"io"
	"regexp"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
)

//go:embed man.tmpl
var manPage string

func manCommand(t *tool) *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page, in the format of man",
		Description: `read it      mcompress man | man -l -
install it   mcompress man > ~/.local/share/man/man1/mcompress.1`,
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			return printMan(t.stdout, t.app())
		},
	}
}

// printMan prints the manual page in roff, with the macros of man(7).
func printMan(w io.Writer, app *cli.App) error {
	functions := template.FuncMap{
		"roff":        roff,
		"description": description,
		"term":        func(flag cli.Flag) string { term, _, _ := strings.Cut(flag.String(), "\t"); return roff(term) },
		"text":        func(flag cli.Flag) string { _, text, _ := strings.Cut(flag.String(), "\t"); return roff(text) },
		"category": func(flag cli.Flag) string {
			if c, ok := flag.(cli.CategorizableFlag); ok {
				return c.GetCategory()
			}
			return ""
		},
	}
	page := template.Must(template.New("man").Funcs(functions).Parse(manPage))
	return page.Execute(w, map[string]any{"App": app, "Version": mcompress.Version()})
}

// column matches a line of a table: a name and its description.
var column = regexp.MustCompile(`^  (\S+)(?:\t|  +)(\S.*)\n?$`)

// description returns a description: rows of tables as tagged paragraphs, and other lines as they are.
func description(text string) string {
	var b strings.Builder
	verbatim := false
	for line := range strings.Lines(text) {
		row := column.FindStringSubmatch(line)
		if isText := row == nil && line != "\n"; isText != verbatim {
			b.WriteString(map[bool]string{true: "\n.PP\n.nf", false: "\n.fi"}[isText])
			verbatim = isText
		}
		switch {
		case row != nil:
			b.WriteString("\n.TP\n.B " + roff(row[1]) + "\n" + roff(row[2]))
		case verbatim:
			b.WriteString("\n" + roff(strings.TrimSuffix(line, "\n")))
		}
	}
	if verbatim {
		b.WriteString("\n.fi")
	}
	return b.String()
}

// roff returns text that roff prints literally: a dash is a minus, and no line is a request.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
