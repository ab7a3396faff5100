//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package weightcache

import (
	"errors"
	"os"

	"github.com/mcompress/mcompress/ir"
)

// mapFile reads the file of a name: memory is not shared.
func mapFile(dir *os.Root, name string) (data []byte, unmap func() error, err error) {
	f, size, err := open(dir, name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data = ir.AlignedBytes(size)
	return data, func() error { return nil }, ir.ReadFull(f, data, 0)
}
