//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// limitGroup gives f the group of the sources. If that is not possible, its group has no more access than others.
func (a Access) limitGroup(f *os.File) {
	st, err := f.Stat()
	if err != nil || a.grants(group(st)) {
		return
	}
	// Only root may give a file any group; others only one that they belong to, so that Chown may fail.
	if first := group(a.sources[0]); a.grants(first) && f.Chown(-1, first) == nil {
		return
	}
	perm := st.Mode().Perm()
	// The file's group is then unrelated to the sources: the bits of the group (0o070) remain only where others
	// (0o007, here shifted by 3) have them too.
	_ = f.Chmod(perm&^0o070 | perm&(perm<<3)&0o070)
}

// grants reports whether the permissions of all sources for their group are about this group.
func (a Access) grants(g int) bool {
	return !slices.ContainsFunc(a.sources, func(st fs.FileInfo) bool { return group(st) != g })
}

// group is the number of the group of a file.
func group(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Gid)
	}
	return -1
}
