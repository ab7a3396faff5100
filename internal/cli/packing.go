package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/mcompress/mcompress"
)

// Packed writes the sizes of a packed model.
func Packed(w io.Writer, s Style, p *mcompress.Packed) error {
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

// Unpacked writes the files of an unpacked model with their digests.
func Unpacked(w io.Writer, s Style, u *mcompress.Unpacked) error {
	if _, err := fmt.Fprintln(w, s.bold(Escape(u.Packed))); err != nil {
		return err
	}
	t := &textTable{indent: "  ", align: "lrl"}
	for _, f := range u.Files {
		t.add(f.Name, size(f.Bytes), "sha256:"+f.SHA256)
	}
	return t.write(w)
}

// An unpackedFile is the JSON form of a file of an unpacked model.
type unpackedFile struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// UnpackedJSON writes the files of an unpacked model as JSON.
func UnpackedJSON(w io.Writer, u *mcompress.Unpacked) error {
	files := make([]unpackedFile, len(u.Files))
	for i, f := range u.Files {
		files[i] = unpackedFile{f.Name, f.Bytes, f.SHA256}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Packed string         `json:"packed"`
		Files  []unpackedFile `json:"files"`
	}{u.Packed, files})
}
