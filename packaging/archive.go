package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// A file is an entry of an archive. Its mode is 0644 if it has none.
type file struct {
	name string
	mode fs.FileMode
	data []byte
	uid  int
}

func (f file) permissions() fs.FileMode {
	if f.mode == 0 {
		return 0o644
	}
	return f.mode
}

// archive writes the .tar.gz, on Windows the .zip, of one program: everything is in one folder.
func (r *release) archive(p *program, common []file) error {
	files := append([]file{{name: p.executable(), mode: 0o755, data: p.binary}, {name: "mcompress.cdx.json", data: p.sbom}}, p.notices...)
	folder := p.name(r.version)
	var entries []file
	for _, f := range append(files, common...) {
		f.name = folder + "/" + f.name
		entries = append(entries, f)
	}
	if p.goos == "windows" {
		data, err := zipped(entries, r.epoch)
		if err != nil {
			return err
		}
		return r.write(folder+".zip", data)
	}
	data, err := tarGzip(entries, r.epoch)
	if err != nil {
		return err
	}
	return r.write(folder+".tar.gz", data)
}

// common returns the files that are in every archive: documentation and completions.
func (r *release) common() ([]file, error) {
	files := []file{
		{name: "README.md"}, {name: "completions/mcompress.bash"}, {name: "completions/_mcompress"}, {name: "completions/mcompress.fish"},
	}
	for i, source := range []string{"packaging/README.md", "cmd/mcompress/completion.bash", "cmd/mcompress/completion.zsh", "cmd/mcompress/completion.fish"} {
		var err error
		if files[i].data, err = r.read(source); err != nil {
			return nil, err
		}
	}
	host := target{goos: runtime.GOOS, goarch: runtime.GOARCH}
	page, err := r.command(host, "go", append(append([]string{"run"}, r.buildFlags(host)...), "./cmd/mcompress", "man")...)
	return append(files, file{name: "man/man1/mcompress.1", data: page}), err
}

// tarred returns a tar archive, in the format of POSIX.1-1988 (ustar).
func tarred(files []file, epoch time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Format: tar.FormatUSTAR, Name: f.name, ModTime: epoch, Size: int64(len(f.data)), Uid: f.uid, Gid: f.uid,
			Typeflag: tar.TypeReg, Mode: int64(f.permissions().Perm())}
		if f.mode.IsDir() {
			h.Name, h.Typeflag = f.name+"/", tar.TypeDir
		}
		if f.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func tarGzip(files []file, epoch time.Time) ([]byte, error) {
	data, err := tarred(files, epoch)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b) // gzip.BestCompression takes 3.6 times as long, for 0.4 % of the size
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// zipped returns a zip archive.
func zipped(files []file, epoch time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(f.permissions())
		entry, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// checksums writes SHA256SUMS of all results, in the format of sha256sum.
func (r *release) checksums() error {
	var b bytes.Buffer
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return r.write("SHA256SUMS", b.Bytes())
}
