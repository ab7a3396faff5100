package memory

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// Measure measures the memory of the process.
func Measure() Process {
	status := readFields("/proc/self/status")
	p := Process{Program: max(mappedPrograms(), status["RssFile:"]<<10),
		Resident: (status["RssAnon:"] + status["RssShmem:"]) << 10, Go: goMemory()}
	// Where the fields are missing, what the Go runtime has is the nearest.
	if p.Resident == 0 {
		p.Resident = p.Go
	}
	return p
}

// mappedPrograms is the size of all mappings of files of which some part is executable.
func mappedPrograms() (sum int64) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0
	}
	defer f.Close()
	sizes, executable := map[string]int64{}, map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); { // "from-to rwxp offset device inode path"
		words := strings.Fields(s.Text())
		if len(words) < 6 || words[4] == "0" {
			continue
		}
		from, to, _ := strings.Cut(words[0], "-")
		a, errA := strconv.ParseInt(from, 16, 64)
		b, errB := strconv.ParseInt(to, 16, 64)
		if errA != nil || errB != nil {
			continue
		}
		// By inode: a program has several mappings, of which one is executable.
		sizes[words[4]] += b - a
		executable[words[4]] = executable[words[4]] || strings.Contains(words[1], "x")
	}
	for inode, n := range sizes {
		if executable[inode] {
			sum += n
		}
	}
	return sum
}
