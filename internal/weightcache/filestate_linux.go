package weightcache

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// fileState identifies a file and its last change, and has the time of that.
func fileState(st fs.FileInfo) (id string, changed time.Time, ok bool) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "", changed, false
	}
	changed = time.Unix(s.Ctim.Unix())
	return fmt.Sprint(s.Dev, s.Ino, changed.UnixNano()), changed, true
}
