package cli

import (
	"fmt"
	"io"

	"github.com/mcompress/mcompress/internal/pack"
)

// A Packing is the result of the command pack.
type Packing struct {
	Model   string `json:"model"`
	Output  string `json:"output"`
	Bytes   int64  `json:"bytes"`        // of the model with its external data
	Packed  int64  `json:"packed_bytes"` // of the packed file
	Tensors int    `json:"tensors"`      // with chunks of their own

	Codecs []CodecSize `json:"codecs"`
}

// A CodecSize is the size of all tensors of one codec.
type CodecSize struct {
	Codec  string `json:"codec"`
	Bytes  int64  `json:"bytes"`
	Packed int64  `json:"packed_bytes"`
}

// Count sets the number of tensors and the sizes by codec, in the order of first use.
func (p *Packing) Count(index *pack.Index) {
	p.Tensors = len(index.Tensors)
	rows := map[string]int{}
	for _, t := range index.Tensors {
		i, ok := rows[t.Codec]
		if !ok {
			i = len(p.Codecs)
			rows[t.Codec] = i
			p.Codecs = append(p.Codecs, CodecSize{Codec: t.Codec})
		}
		p.Codecs[i].Bytes += t.Size
		p.Codecs[i].Packed += index.Packed(t)
	}
}

// Text writes the sizes.
func (p *Packing) Text(w io.Writer, s Style) error {
	if _, err := fmt.Fprintln(w, s.bold(Escape(p.Model))+" → "+s.bold(Escape(p.Output))); err != nil {
		return err
	}
	t := &textTable{indent: "  ", align: "lrr"}
	row := func(name string, before, after int64) {
		t.add(name, size(before)+" → "+size(after), percent(float64(after)/float64(max(1, before))))
	}
	row("file size", p.Bytes, p.Packed)
	for _, c := range p.Codecs {
		row(c.Codec, c.Bytes, c.Packed)
	}
	return t.write(w)
}

// An Unpacking is the result of the command unpack.
type Unpacking struct {
	Packed string         `json:"packed"`
	Files  []UnpackedFile `json:"files"`
}

// An UnpackedFile is a file that unpack wrote.
type UnpackedFile struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Text writes the files with their digests.
func (u *Unpacking) Text(w io.Writer, s Style) error {
	if _, err := fmt.Fprintln(w, s.bold(Escape(u.Packed))); err != nil {
		return err
	}
	t := &textTable{indent: "  ", align: "lrl"}
	for _, f := range u.Files {
		t.add(f.Path, size(f.Bytes), "sha256:"+f.SHA256)
	}
	return t.write(w)
}
