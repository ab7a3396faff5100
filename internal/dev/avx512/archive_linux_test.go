package avx512

import (
	"fmt"
	"strings"
)

// An archive is the files of the first root folder of Linux, in the format newc of cpio
// (https://docs.kernel.org/driver-api/early-userspace/buffer-format.html).
type archive struct{ strings.Builder }

// add adds a file of a mode, or if it is a device, the console.
func (a *archive) add(name string, mode int, content string) {
	const device, major, minor = 0o020000, 5, 1
	of := [2]int{}
	if mode&0o170000 == device {
		of = [2]int{major, minor}
	}
	a.WriteString("070701")
	for _, field := range []int{1, mode, 0, 0, 1, 0, len(content), 0, 0, of[0], of[1], len(name) + 1, 0} {
		fmt.Fprintf(a, "%08x", field)
	}
	a.WriteString(name + "\x00")
	a.pad()
	a.WriteString(content)
	a.pad()
}

func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}

// closed is the bytes of the archive.
func (a *archive) closed() string {
	a.add("TRAILER!!!", 0, "")
	return a.String()
}
