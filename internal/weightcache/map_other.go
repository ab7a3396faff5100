//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package weightcache

import (
	"errors"

	"github.com/mcompress/mcompress/ir"
)

// mapFile reads the file at path: memory is not shared.
func mapFile(path string) (data []byte, unmap func() error, err error) {
	f, size, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data = ir.AlignedBytes(size)
	return data, func() error { return nil }, ir.ReadFull(f, data, 0)
}
