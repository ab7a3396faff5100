package report

import "syscall"

// peakResident is in bytes on this system.
// Resident returns the resident memory of the process in bytes, now and at its peak; 0 if it is not known.
func Resident() (now, peak int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return 0, u.Maxrss
}

func cpu() string {
	name, err := syscall.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
