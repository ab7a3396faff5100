//go:build unix

package main

import "syscall"

// noCoreDump lets signals end the program without a file of its memory.
func noCoreDump() {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err == nil {
		limit.Cur = 0
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit) // a limit may always be lowered
	}
}
