//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package weightcache

import (
	"errors"
	"os"

	"github.com/mcompress/mcompress/ir"
)

// mapFile reads the file at path: memory is not shared.
func mapFile(path string) (data []byte, unmap func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	data = ir.AlignedBytes(st.Size())
	return data, func() error { return nil }, ir.ReadFull(f, data, 0)
}
