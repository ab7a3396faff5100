package mcompress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/pack"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// PackOptions are the options of Pack. The zero value has defaults.
type PackOptions struct {
	Base   string // path of a model that tensors are stored as differences from; empty for none
	NoSync bool   // do not flush files to the disk
	Limits Limits
	Events Events // Progress
}

// UnpackOptions are the options of Unpack. The zero value has defaults.
type UnpackOptions struct {
	PackOptions
	Overwrite bool // replace files of external data that exist with other content
}

// Packed is a packed model.
type Packed struct {
	Model   string `json:"model"`
	Output  string `json:"output"`
	Bytes   int64  `json:"bytes"`        // of the model with its external data
	Packed  int64  `json:"packed_bytes"` // of the packed file
	Tensors int    `json:"tensors"`      // with chunks of their own

	Codecs []PackedCodec `json:"codecs"`
}

// A PackedCodec is the size of all tensors of one codec.
type PackedCodec struct {
	Codec  string `json:"codec"`
	Bytes  int64  `json:"bytes"`
	Packed int64  `json:"packed_bytes"`
}

// count sets the number of tensors and the sizes by codec, in the order of first use.
func (p *Packed) count(index *pack.Index) {
	p.Tensors = len(index.Tensors)
	rows := map[string]int{}
	for _, t := range index.Tensors {
		i, ok := rows[t.Codec]
		if !ok {
			i = len(p.Codecs)
			rows[t.Codec] = i
			p.Codecs = append(p.Codecs, PackedCodec{Codec: t.Codec})
		}
		p.Codecs[i].Bytes += t.Size
		p.Codecs[i].Packed += index.Packed(t)
	}
}

// Pack packs the model at a path without loss (.mcz, docs/formats/mcz.md) into a file at path out, which appears whole.
// External data is part of the packed file.
func Pack(ctx context.Context, model, out string, o PackOptions) (_ *Packed, err error) {
	f, err := onnx.OpenContext(ctx, model)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	set := &atomicfile.Set{Sync: !o.NoSync}
	defer func() { err = errors.Join(err, set.Close()) }()
	if set.Access, err = atomicfile.Like(f.Paths()...); err != nil {
		return nil, err
	}
	p := &Packed{Model: model, Output: out, Bytes: f.Size()}
	err = set.WriteFile(out, func(w io.Writer) error { return o.write(ctx, w, f, p) })
	if err == nil {
		err = set.Publish(out)
	}
	if err != nil {
		return nil, err
	}
	written, err := os.Stat(out)
	if err != nil {
		return nil, err
	}
	p.Packed = written.Size()
	return p, nil
}

// PackTo packs the model at a path to a writer, which after an error has a part of it.
func PackTo(ctx context.Context, model string, w io.Writer, o PackOptions) (err error) {
	f, err := onnx.OpenContext(ctx, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return o.write(ctx, w, f, &Packed{})
}

// write packs f, and counts in p.
func (o PackOptions) write(ctx context.Context, w io.Writer, f *onnx.File, p *Packed) error {
	return o.withBase(ctx, f.Path, func(options pack.Options) error {
		index, err := pack.Write(ctx, w, job.FilesToPack(f), options)
		if err == nil {
			p.count(index)
		}
		return err
	})
}

// withBase calls f with the options, among which are the files of the base.
func (o PackOptions) withBase(ctx context.Context, name string, f func(pack.Options) error) (err error) {
	if err := o.Limits.check(); err != nil {
		return err
	}
	show, end := o.Events.stage(name, StageWrite)
	defer end()
	options := pack.Options{Workers: o.Limits.threads(), Memory: o.Limits.weights(), Progress: show}
	if o.Base == "" {
		return f(options)
	}
	base, err := onnx.OpenContext(ctx, o.Base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	options.Base = job.FilesToPack(base)
	return f(options)
}

// Unpacked are the files of an unpacked model, the model first.
type Unpacked struct {
	Packed string
	Files  []report.File // with their paths as names
}

// Unpack restores the model of the packed file at a path, or of in if the path is only its name, at path out, bit for
// bit. Files of external data have the names that the model refers to, in the folder of the model. Every chunk and the
// SHA-256 of every file are verified before a file appears; so is that of the base. A file of external data that exists
// with other content is a *registry.ConflictError unless o.Overwrite: its name is that of the container, not one that
// the caller gave.
func Unpack(ctx context.Context, packed string, in io.Reader, out string, o UnpackOptions) (_ *Unpacked, err error) {
	set := &atomicfile.Set{Sync: !o.NoSync, Base: filepath.Dir(out)}
	defer func() { err = errors.Join(err, set.Close()) }()
	if in == nil {
		if set.Access, err = atomicfile.Like(packed); err != nil {
			return nil, err
		}
		f, err := os.Open(packed)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	u := &Unpacked{Packed: packed}
	err = o.withBase(ctx, packed, func(options pack.Options) error {
		index, err := pack.Read(ctx, in, packed, func(f pack.FileInfo) (pack.Output, error) {
			to := out
			if len(u.Files) > 0 {
				var err error
				if to, err = untrusted.Path(filepath.Dir(out), f.Name); err != nil {
					return nil, err
				}
				if to == filepath.Clean(out) {
					return nil, &atomicfile.TargetError{Path: to, What: "a file of the model's external data"}
				}
			}
			if err := set.MakeDir(filepath.Dir(to)); err != nil {
				return nil, err
			}
			u.Files = append(u.Files, report.File{Name: to, Bytes: f.Size})
			// Before it is unpacked: a conflict is found without writing gigabytes.
			if st, err := os.Lstat(to); err == nil && to != out && st.Size() != f.Size && !o.Overwrite {
				return nil, conflict(to, st.Size())
			}
			return set.Create(to)
		}, options)
		if err != nil {
			return err
		}
		for i := range u.Files {
			u.Files[i].SHA256 = index.Files[i].SHA256
		}
		return o.checkReplaced(ctx, u.Files[1:])
	})
	if err == nil {
		err = set.Publish(out)
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}

// checkReplaced returns an error if one of the files exists with other content, unless it is to be replaced.
func (o UnpackOptions) checkReplaced(ctx context.Context, files []report.File) error {
	if o.Overwrite {
		return nil
	}
	for _, f := range files {
		switch sum, size, err := digest.File(ctx, f.Name, nil); {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case sum != f.SHA256:
			return conflict(f.Name, size)
		}
	}
	return nil
}

func conflict(path string, size int64) error {
	return &registry.ConflictError{What: path, There: fmt.Sprintf("%d bytes", size)}
}
