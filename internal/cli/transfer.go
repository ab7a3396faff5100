package cli

import (
	"fmt"
	"io"

	"github.com/mcompress/mcompress/registry"
)

// A Transfer is the JSON form of a push or pull.
type Transfer struct {
	Reference   string            `json:"reference"`
	Digest      string            `json:"digest"` // the reference by digest, version or path
	Bytes       int64             `json:"bytes"`
	Transferred int64             `json:"transferred_bytes"`
	Files       []TransferredFile `json:"files"`
}

// A TransferredFile is a file of a Transfer.
type TransferredFile struct {
	registry.File
	Path string `json:"path"`
}

// PushedFacts is the JSON form of a push.
func PushedFacts(p *registry.Pushed) Transfer {
	return Transfer{p.Reference.String(), p.Digest.String(), p.Size, p.Uploaded, transferred(p.Files)}
}

// PulledFacts is the JSON form of a pull.
func PulledFacts(p *registry.Pulled) Transfer {
	return Transfer{p.Reference.String(), p.Digest.String(), p.Size, p.Downloaded, transferred(p.Files)}
}

func transferred(files []registry.File) []TransferredFile {
	list := []TransferredFile{}
	for _, f := range files {
		list = append(list, TransferredFile{f, f.Path})
	}
	return list
}

// Pushed writes the result of a push.
func Pushed(w io.Writer, s Style, model string, p *registry.Pushed) error {
	if _, err := fmt.Fprintln(w, s.bold(model)+" → "+s.bold(p.Reference.String())); err != nil {
		return err
	}
	return writeTransfer(w, p.Digest, p.Files, fmt.Sprintf("%s of %s uploaded", size(p.Uploaded), size(p.Size)))
}

// Pulled writes the result of a pull.
func Pulled(w io.Writer, s Style, p *registry.Pulled) error {
	if _, err := fmt.Fprintln(w, s.bold(p.Reference.String())); err != nil {
		return err
	}
	return writeTransfer(w, p.Digest, p.Files, fmt.Sprintf("%s of %s downloaded", size(p.Downloaded), size(p.Size)))
}

func writeTransfer(w io.Writer, digest registry.Reference, files []registry.File, total string) error {
	t := &textTable{indent: "  ", align: "lrl"}
	for _, f := range files {
		path := f.Path
		if path == "" {
			path = f.Name
		}
		t.add(Escape(path), size(f.Size), string(f.Role))
	}
	if err := t.write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "  %s\n  %s\n", total, digest)
	return err
}
