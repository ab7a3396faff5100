//go:build !linux && !darwin

package report

// This system provides these only through its own libraries.
// Resident returns the resident memory of the process in bytes, now and at its peak; 0 if it is not known.
func Resident() (now, peak int64) { return 0, 0 }

func cpu() string { return "" }
