package memory

import (
	"bufio"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// available is the number of bytes that the process can still get: of the machine, of its control groups, and of its
// address space. It is an estimate, as other processes take memory too.
func available() int64 {
	return max(0, min(machineMemory(), groupMemory(), addressSpace()))
}

// machineMemory is the memory that is free or can be freed, and swap.
func machineMemory() int64 {
	fields := readFields("/proc/meminfo")
	// In KiB.
	if n, ok := fields["MemAvailable:"]; ok {
		return (n + fields["SwapFree:"]) << 10
	}
	return math.MaxInt64
}

// groupMemory is the minimum over the control groups (version 2) of this process, from its own to the root. The page
// cache is not counted as used.
func groupMemory() int64 {
	const root = "/sys/fs/cgroup"
	free := int64(math.MaxInt64)
	for dir := path.Join(root, ownGroup()); strings.HasPrefix(dir, root); dir = path.Dir(dir) {
		limit, ok := readNumber(path.Join(dir, "memory.max"))
		if !ok {
			continue
		}
		used, _ := readNumber(path.Join(dir, "memory.current"))
		stat := readFields(path.Join(dir, "memory.stat"))
		// memory.current counts the page cache, which the kernel frees before it refuses memory.
		free = min(free, limit-used+stat["active_file"]+stat["inactive_file"])
	}
	return free
}

// ownGroup is the path of the process's control group.
func ownGroup() string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return dir
		}
	}
	return ""
}

// addressSpace is the rest of the limit that ulimit -v sets.
func addressSpace() int64 {
	// A process at this limit cannot get memory although the machine has it, and the Go runtime would end it.
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur >= math.MaxInt64 {
		return math.MaxInt64
	}
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _, _ := strings.Cut(string(text), " ")
	used, _ := strconv.ParseInt(pages, 10, 64)
	return int64(limit.Cur) - used*int64(os.Getpagesize())
}

// readNumber reads a file with one number; false for another text, such as "max".
func readNumber(name string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// readFields reads the first number of each line by its first word.
func readFields(name string) map[string]int64 {
	fields := map[string]int64{}
	f, err := os.Open(name)
	if err != nil {
		return fields
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if words := strings.Fields(s.Text()); len(words) > 1 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				fields[words[0]] = n
			}
		}
	}
	return fields
}
