package report

import (
	"os"
	"strconv"
	"strings"
)

// Resident returns the resident memory of the process in bytes, now and at its peak; 0 if it is not known. The peak is
// the high-water mark of this program's own memory: getrusage would include that of the process which started it.
func Resident() (now, peak int64) {
	return statusBytes("VmRSS"), statusBytes("VmHWM")
}

// statusBytes is a size of the status of the process, 0 if there is none.
func statusBytes(name string) int64 {
	kib, _, _ := strings.Cut(procField("/proc/self/status", name), " ")
	n, err := strconv.ParseInt(kib, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

func cpu() string { return procField("/proc/cpuinfo", "model name") }

// procField is the first value of that name in a file of "name : value" lines.
func procField(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
