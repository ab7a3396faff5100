package cli

import (
	"flag"
	"maps"
	"slices"
	"strings"
)

// Complete returns completions of the last of words, which follow the program's name; none for file names. sets has the flags by
// command, and for "" those before a command; arguments has the fixed arguments of commands.
func Complete(sets map[string]*flag.FlagSet, arguments map[string][]string, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	command, pending := scan(sets, before)
	var all []string
	switch {
	case pending != nil:
		if e, ok := pending.Value.(interface{ Choices() []string }); ok {
			all = e.Choices()
		}
	case strings.HasPrefix(last, "-"):
		all = FlagNames(sets[command])
	case command == "":
		all = slices.Collect(maps.Keys(sets))
	default:
		all = arguments[command]
	}
	all = slices.DeleteFunc(slices.Clone(all), func(word string) bool { return word == "" || !strings.HasPrefix(word, last) })
	slices.Sort(all)
	return all
}

// FlagNames returns the long names of flags, with dashes.
func FlagNames(fs *flag.FlagSet) (names []string) {
	if fs == nil {
		return nil
	}
	fs.VisitAll(func(f *flag.Flag) {
		if len(f.Name) > 1 {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// scan returns the command among words, and the last flag if its value is still missing.
func scan(sets map[string]*flag.FlagSet, words []string) (command string, pending *flag.Flag) {
	for _, w := range words {
		switch name := strings.TrimLeft(w, "-"); {
		case pending != nil:
			pending = nil
		case w == name && command == "":
			command = w
		case w != name && sets[command] != nil:
			if f := sets[command].Lookup(name); f != nil && !IsBool(f) {
				pending = f
			}
		}
	}
	return command, pending
}
