// Package doctest tests the documentation: the commands of README.md and docs/guide with their
// output, the pipeline snippet, tables, links between pages, and the list of dependencies.
// It consists of tests; they build the program and run it as users do.
package doctest
