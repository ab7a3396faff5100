package filestate

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Of identifies a file by device, inode and size, and its last change by the times of its content and of its status,
// which programs cannot set. It has the later one.
func Of(st fs.FileInfo) (id string, changed time.Time, ok bool) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "", changed, false
	}
	changed = time.Unix(s.Ctimespec.Unix())
	if st.ModTime().After(changed) {
		changed = st.ModTime()
	}
	return fmt.Sprint(s.Dev, s.Ino, changed.UnixNano(), st.Size(), st.ModTime().UnixNano()), changed, true
}
