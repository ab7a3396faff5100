package onnx

import (
	"errors"

	"github.com/mcompress/mcompress/internal/pack"
)

// unpacked returns the model file and the folder of the packed model in r, whose chunks are decoded when they are read.
func unpacked(r *source) (*source, *folder, error) {
	a, err := pack.Open(r, r.size, r.path)
	if err != nil {
		var fe *pack.FormatError
		if errors.As(err, &fe) {
			err = &FormatError{File: fe.File, Off: fe.Off, Msg: fe.Err.Error(), Err: errors.Unwrap(fe.Err)}
		}
		return nil, nil, err
	}
	model := a.Member(0)
	name := a.Index.Files[0].Name
	main := &source{ReaderAt: model, Closer: r.Closer, path: r.path, size: model.Size(), member: name, watched: r.watched}
	return main, &folder{path: name, inside: name, fsys: a}, nil
}

// Packed reports whether the model was opened from a packed file (.mcz). Its parts are those of the model in it, and it
// has one path.
func (f *File) Packed() bool { return f.main.member != "" }
