package cli

import (
	"maps"
	"slices"
	"strings"
)

// Complete lists completions of the last of words, which follow the
// program's name; none for file names. choices are the values of a command's
// flags, by "command --flag", "--flag" for global ones and "command" for arguments.
func Complete(s Syntax, choices map[string][]string, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	command, pending := place(s, before)
	var all []string
	switch {
	case pending != "":
		all = slices.Concat(choices["--"+pending], choices[command+" --"+pending])
	case strings.HasPrefix(last, "-"):
		for _, names := range []map[string]bool{s.Global, s.Commands[command]} {
			for name := range names {
				if len(name) > 1 {
					all = append(all, "--"+name)
				}
			}
		}
	case command == "":
		all = slices.Collect(maps.Keys(s.Commands))
	default:
		all = slices.Clone(choices[command])
	}
	all = slices.DeleteFunc(all, func(w string) bool { return !strings.HasPrefix(w, last) })
	slices.Sort(all)
	return all
}

// place is the command among words, and the last flag if its value is still missing.
func place(s Syntax, words []string) (command, pending string) {
	for _, w := range words {
		name, isFlag := flagName(w)
		switch {
		case pending != "":
			pending = ""
		case !isFlag && command == "":
			command = w
		case isFlag && !strings.Contains(w, "=") && (s.Global[name] || s.Commands[command][name]):
			pending = name
		}
	}
	return command, pending
}
