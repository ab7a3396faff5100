//go:build !linux && !darwin

package report

// This system provides these only through its own libraries.
func peakResident() int64 { return 0 }

func cpu() string { return "" }
