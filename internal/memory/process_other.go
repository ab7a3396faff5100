//go:build !linux

package memory

// Measure estimates the memory of the process by what the Go runtime has.
func Measure() Process {
	n := goMemory()
	return Process{Program: programBytes, Resident: n, Go: n}
}
