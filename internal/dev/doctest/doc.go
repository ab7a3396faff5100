// Package house holds what the repository says of itself against what is so: the README's
// commands and their output, the pipeline snippet, links between pages, and the list of
// dependencies. It is made of tests; they build the program and run it as users do.
package doctest
