//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether only this user can have made a file: they own it, and it has no other name, under which it would
// be a file of theirs that somebody else has linked.
func isOwn(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return !ok || sys.Uid == uint32(os.Geteuid()) && sys.Nlink == 1
}

// shared says why others may have made the content of a file or folder; empty if they cannot. Root can change every one.
func shared(st fs.FileInfo) string {
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case ok && sys.Uid != uint32(os.Geteuid()) && sys.Uid != 0:
		return "of another user"
	case st.Mode().Perm()&0o022 != 0:
		return "one that other users may write to"
	}
	return ""
}
