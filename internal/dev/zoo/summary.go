package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"text/tabwriter"
)

// summary prints the number of cases by exit code, the errors by how many models have them, and returns the number of
// findings.
func (s *sweep) summary(w io.Writer) (findings int) {
	type row struct {
		codes    [5]int
		omitted  int
		findings int
	}
	rows, messages := map[string]*row{}, map[string]int{}
	for _, r := range s.results {
		c := rows[r.Case]
		if c == nil {
			c = &row{}
			rows[r.Case] = c
		}
		switch {
		case r.Code == 0 && r.Message != "":
			c.omitted++
		case r.Code >= 0 && r.Code < len(c.codes):
			c.codes[r.Code]++
		}
		if r.Finding != "" {
			c.findings++
			findings++
		}
		if r.Code != 0 {
			messages[fmt.Sprintf("%d  %s", r.Code, withoutNames(r.Message))]++
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "case\texit 0\t1\t2\t3\t4\tnot run\tfindings")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		c := rows[name]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, c.codes[0], c.codes[1], c.codes[2], c.codes[3],
			c.codes[4], c.omitted, c.findings)
	}
	table.Flush()
	fmt.Fprintln(w)
	for _, text := range slices.SortedFunc(maps.Keys(messages), func(a, b string) int {
		return cmp.Or(messages[b]-messages[a], cmp.Compare(a, b))
	}) {
		fmt.Fprintf(w, "%4d × %s\n", messages[text], text)
	}
	return findings
}

// quoted are names in quotes, and numbers.
var quoted = regexp.MustCompile(`"[^"]*"|[0-9]+`)

// withoutNames replaces names and numbers, so that equal errors of several models count together.
func withoutNames(message string) string { return quoted.ReplaceAllString(message, "…") }
