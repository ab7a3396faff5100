package main

import "runtime/debug"

// abortOnFatalErrors lets errors of the Go runtime that nothing can recover from, such as memory that the system refuses,
// end the program by a signal. The runtime ends it with exit code 2 otherwise, which is that of a request that is not
// valid. On Windows it remains 2.
func abortOnFatalErrors() {
	noCoreDump() // of all memory, which such an error may be about
	debug.SetTraceback("crash")
}
