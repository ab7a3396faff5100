// Package cli is the testable part of the commands: the order of arguments,
// options of methods, values of flags, names of outputs, and facts as text. It parses no
// command line and ends no process: cmd/mcompress does.
package cli
