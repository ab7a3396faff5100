//go:build amd64 && !noasm

package kernel

import "syscall"

// permitTiles requests the state of tiles from Linux, which a thread gets when it uses them first, and reports whether
// this process may use them.
func permitTiles() bool {
	const requestPermission, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
