//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package weightcache

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// mapFile maps the file of a name into memory, until unmap. Files of the cache are replaced as a whole, never changed or
// truncated.
func mapFile(dir *os.Root, name string) (data []byte, unmap func() error, err error) {
	f, size, err := open(dir, name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}
