package memory

import (
	"bufio"
	"math"
	"os"
	"path"
	"slices"
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

// groupMemory is what the control groups of this process leave.
func groupMemory() int64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	return groupsLeave("/sys/fs/cgroup", string(groups))
}

// A hierarchy is a tree of control groups with the files of a group.
type hierarchy struct {
	mount        string // below the root of all
	limits       []string
	used         string
	active, idle string // fields of memory.stat: the page cache of the group and of those below
}

var (
	unified = hierarchy{"", []string{"memory.max", "memory.high"}, "memory.current", "active_file", "inactive_file"}
	// Version 1 has a tree for each resource.
	ofMemory = hierarchy{"memory", []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_active_file",
		"total_inactive_file"}
)

// groupsLeave is the minimum over the control groups of a process, which text of /proc/self/cgroup names, from its own to
// the root: each limits those below it.
func groupsLeave(root, text string) int64 {
	free := int64(math.MaxInt64)
	for line := range strings.Lines(text) {
		// "0::/path" of version 2, "4:cpu,memory:/path" of version 1.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		h := unified
		switch {
		case fields[0] == "0" && fields[1] == "":
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			h = ofMemory
		default:
			continue
		}
		free = min(free, h.leaves(path.Join(root, h.mount), fields[2]))
	}
	return free
}

// leaves is the minimum over a group and those above it. In a container the path may be that of the host, of which only
// the end of the walk, the root of the mount, is there: it is the container's own group then.
func (h hierarchy) leaves(root, group string) int64 {
	free := int64(math.MaxInt64)
	for group = path.Join("/", group); ; group = path.Dir(group) {
		dir := path.Join(root, group)
		for _, name := range h.limits {
			// A text such as "max" is no limit.
			limit, ok := readNumber(path.Join(dir, name))
			if !ok {
				continue
			}
			used, _ := readNumber(path.Join(dir, h.used))
			stat := readFields(path.Join(dir, "memory.stat"))
			// The page cache counts as used, and the kernel frees it before it refuses memory.
			free = min(free, limit-used+stat[h.active]+stat[h.idle])
		}
		if group == "/" {
			return free
		}
	}
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
