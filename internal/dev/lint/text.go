package lint

import (
	"regexp"
	"strings"
)

// The words are put together here, so that this file does not break its own rules.
var (
	stubPattern    = regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X)\b`)
	machinePattern = regexp.MustCompile(`(^|[^\w.~)}$-])/(` + `work|root|tmp|home/\w+)/`)
	hostPattern    = regexp.MustCompile(`\b(` + strings.Join([]string{
		`pypi\.` + `org`, `files\.python` + `hosted\.org`, `(proxy|sum)\.go` + `lang\.org`,
		`registry\.npm` + `js\.org`, `index\.crates\.` + `io`,
	}, "|") + `)\b`)
)

func stubs(t *Tree) []Problem {
	return t.matching(stubPattern, "%q: do it now, or open an issue and leave no mark here",
		func(*File) bool { return true })
}

func machinePaths(t *Tree) []Problem {
	return t.matching(machinePattern, "%q is a path of one machine: take it from an option or the environment", built)
}

func hosts(t *Tree) []Problem {
	return t.matching(hostPattern, "%q: leave the registry to the tools' own configuration",
		func(*File) bool { return true })
}

// matching returns a problem for each line of the files that the pattern matches.
func (t *Tree) matching(pattern *regexp.Regexp, format string, in func(*File) bool) []Problem {
	var found []Problem
	for _, f := range t.Files {
		if !in(f) {
			continue
		}
		for i, line := range strings.Split(f.Text, "\n") {
			if m := pattern.FindString(line); m != "" {
				p := t.problem(f, 0, format, m)
				p.Line = i + 1
				found = append(found, p)
			}
		}
	}
	return found
}
