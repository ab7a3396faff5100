//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package weightcache

import (
	"errors"
	"fmt"
	"syscall"
)

// mapFile maps the file at path into memory, until unmap. Files of the cache are replaced as a whole, never changed or
// truncated.
func mapFile(path string) (data []byte, unmap func() error, err error) {
	f, size, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}
