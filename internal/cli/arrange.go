package cli

import (
	"slices"
	"strings"
)

// A Syntax is what Arrange must know of a command line: flags by all their names, and
// whether each takes a value.
type Syntax struct {
	Global   map[string]bool
	Commands map[string]map[string]bool
}

// Arrange puts arguments into the order in which a parser that stops at the first
// positional one finds every flag: global flags, the command, its flags, "--", positional
// arguments. Flags may stand anywhere behind the command and global ones anywhere; what
// follows a "--" is positional. Flags that nothing declares stay in their place for the
// parser to name them. Arguments of equal kind keep their order.
func Arrange(s Syntax, args []string) []string {
	var global, flags, positional []string
	command := ""
	for len(args) > 0 {
		arg := args[0]
		name, isFlag := flagName(arg)
		switch {
		case arg == "--":
			positional = append(positional, args[1:]...)
			args = nil
			continue
		case !isFlag && command == "":
			command = arg
			args = args[1:]
			continue
		case !isFlag:
			positional = append(positional, arg)
			args = args[1:]
			continue
		}
		into := &flags
		takes, known := s.Commands[command][name]
		if t, ok := s.Global[name]; ok || command == "" {
			into, takes, known = &global, t, ok
		}
		n := 1
		if known && takes && !strings.Contains(arg, "=") {
			n = min(2, len(args))
		}
		*into = append(*into, args[:n]...)
		args = args[n:]
	}
	if command == "" {
		return global
	}
	line := slices.Concat(global, []string{command}, flags)
	if len(positional) > 0 {
		line = append(append(line, "--"), positional...)
	}
	return line
}

// flagName is the name in "-name", "--name" and "--name=value". A single "-" is no flag.
func flagName(arg string) (string, bool) {
	name, ok := strings.CutPrefix(arg, "-")
	if !ok || name == "" {
		return "", false
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return name, true
}
