package cli

import "flag"

// Parse parses args with fs. Unlike fs.Parse, it accepts flags after arguments; all words after "--" are arguments. Then fs.Args
// returns the arguments.
func Parse(fs *flag.FlagSet, args []string) error {
	var positional []string
	for len(args) > 0 {
		if err := fs.Parse(args); err != nil {
			return err
		}
		rest := fs.Args()
		parsed := args[:len(args)-len(rest)]
		if ended := len(parsed) > 0 && parsed[len(parsed)-1] == "--"; ended || len(rest) == 0 {
			positional = append(positional, rest...)
			break
		}
		positional, args = append(positional, rest[0]), rest[1:]
	}
	return fs.Parse(append([]string{"--"}, positional...))
}
