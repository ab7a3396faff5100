package cli

import (
	"fmt"
	"slices"
	"strings"
)

// A Syntax is the flags of a command line by all their names, and
// whether each takes a value.
type Syntax struct {
	Global   map[string]bool
	Commands map[string]map[string]bool
	Topics   map[string]string // by command, the flag that names what help is about
}

// Arrange reorders arguments for a parser that stops at the first
// positional one: global flags, the command, its flags, "--", positional
// arguments. Flags may be anywhere after the command and global ones anywhere; arguments
// after a "--" are positional. Unknown flags are kept for the
// parser to report. Arguments of equal kind keep their order. A flag for help
// drops all other arguments but the topic.
func Arrange(s Syntax, args []string) ([]string, error) {
	var l argLine
	for len(args) > 0 {
		n, err := l.take(s, args)
		if err != nil {
			return nil, err
		}
		args = args[n:]
	}
	return l.arranged(s.Topics[l.command]), nil
}

// An argLine is a parsed command line.
type argLine struct {
	global, flags, positional []string
	command                   string
	help                      bool
}

// take classifies the first of args, with the value after it if it is a flag
// that takes one, and returns the number of arguments consumed.
func (l *argLine) take(s Syntax, args []string) (int, error) {
	arg := args[0]
	name, isFlag := flagName(arg)
	switch {
	case arg == "--":
		l.positional = append(l.positional, args[1:]...)
		return len(args), nil
	case !isFlag && l.command == "":
		l.command = arg
		return 1, nil
	case !isFlag:
		l.positional = append(l.positional, arg)
		return 1, nil
	case name == "help" || name == "h":
		l.help = true
		return 1, nil
	}
	to := &l.flags
	takes := s.Commands[l.command][name]
	if t, global := s.Global[name]; global || l.command == "" {
		to, takes = &l.global, t
	}
	n := 1
	if takes && !strings.Contains(arg, "=") {
		n = 2
	}
	if n > len(args) || n == 2 && args[1] == "--" {
		return 0, fmt.Errorf("%sflag needs a value: %s", l.prefix(), arg)
	}
	*to = append(*to, args[:n]...)
	return n, nil
}

// prefix is the command as a prefix of errors.
func (l *argLine) prefix() string {
	if l.command == "" {
		return ""
	}
	return l.command + ": "
}

// called is the command, if there is one.
func (l *argLine) called() []string {
	if l.command == "" {
		return nil
	}
	return []string{l.command}
}

func (l *argLine) arranged(topic string) []string {
	if l.help {
		return slices.Concat(l.called(), l.given(topic), []string{"--help"})
	}
	all := slices.Concat(l.global, l.called(), l.flags)
	if len(l.positional) > 0 {
		all = append(append(all, "--"), l.positional...)
	}
	return all
}

// given is the last use of a flag that takes a value.
func (l *argLine) given(flag string) (args []string) {
	for i, arg := range l.flags {
		if name, ok := flagName(arg); ok && name == flag && flag != "" {
			args = l.flags[i : i+1]
			if !strings.Contains(arg, "=") {
				args = l.flags[i : i+2]
			}
		}
	}
	return slices.Clone(args)
}

// flagName is the name in "-name", "--name" and "--name=value". A single "-" is not a flag.
func flagName(arg string) (string, bool) {
	name, ok := strings.CutPrefix(arg, "-")
	if !ok || name == "" {
		return "", false
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return name, true
}
