//go:build !linux && !darwin

package report

// This system tells these to programs that link with its own libraries only.
func peakResident() int64 { return 0 }

func cpu() string { return "" }
