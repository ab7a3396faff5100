package onnx

import (
	"io/fs"
	"os"
)

// Stat is the state of the part's open file; ok is false unless it is a file on disk.
func (p Part) Stat() (st fs.FileInfo, ok bool, err error) {
	f, ok := p.r.ReaderAt.(*os.File)
	if !ok {
		return nil, false, nil
	}
	st, err = f.Stat()
	return st, err == nil, err
}
