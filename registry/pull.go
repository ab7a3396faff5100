package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry/internal/transfer"
)

// A Pulled is the result of a pull.
type Pulled struct {
	Reference  Reference // as given
	Digest     Reference // the registry's own name of the content: with the digest, version or path
	Downloaded int64     // bytes; less than Size if some files are there already
	Size       int64     // bytes of all files
	Files      []File    // with their paths
}

// Pull downloads the files into a folder, which it makes if necessary. Files that are there with the same content are
// not downloaded again. All files are verified before the first has its name, so that after an error no file has
// changed; what was downloaded of unfinished files is kept in hidden files of the folder, from which the next Pull of
// the same content resumes.
func (s *Stored) Pull(ctx context.Context, dir string, o Options) (_ *Pulled, err error) {
	p := &puller{
		Stored: s,
		dir:    dir,
		o:      o,
		set:    &atomicfile.Set{Sync: true, Base: dir},
		meter:  transfer.NewMeter(size(s.Files), o.Progress),
	}
	defer func() { err = errors.Join(err, p.set.Close()) }()
	if err := checkFiles(s.Files); err != nil {
		return nil, err
	}
	if len(s.Files) == 0 {
		return nil, &ContentError{s.Reference.String(), errors.New("the registry lists no files")}
	}
	if p.set.Access, err = atomicfile.Like(paths(s.Files)...); err != nil {
		return nil, err
	}
	// Before the first download: a conflict is found without transferring gigabytes.
	missing, err := p.missing(ctx)
	if err != nil {
		return nil, err
	}
	if err := transfer.Each(ctx, o.Parallel, missing, p.download); err != nil {
		return nil, p.discard(err, missing)
	}
	// The model last: where it is, its data files and reports are.
	if err := p.set.Publish(p.model()); err != nil {
		return nil, err
	}
	res := &Pulled{s.Reference, s.Digest, p.downloaded.Load(), size(s.Files), slices.Clone(s.Files)}
	for i, f := range res.Files {
		res.Files[i].Path = p.path(f)
	}
	return res, nil
}

// paths are those of the files that are on disk. Copies of them are not more accessible.
func paths(files []File) []string {
	var list []string
	for _, f := range files {
		if f.Path != "" {
			list = append(list, f.Path)
		}
	}
	return list
}

// A puller is a Pull.
type puller struct {
	*Stored
	dir   string
	o     Options
	meter *transfer.Meter

	mu         sync.Mutex // of set
	set        *atomicfile.Set
	downloaded atomic.Int64
}

func (p *puller) model() string {
	f, _ := p.Find(Model)
	return p.path(f)
}

func (p *puller) path(f File) string { return filepath.Join(p.dir, filepath.FromSlash(f.Name)) }

// missing makes the folders of the files and returns those that are not there already. It is an error if other content
// is there.
func (p *puller) missing(ctx context.Context) ([]File, error) {
	var list []File
	for _, f := range p.Files {
		if err := p.set.MakeDir(filepath.Dir(p.path(f))); err != nil {
			return nil, err
		}
		there, err := p.isThere(ctx, f)
		if err != nil {
			return nil, err
		}
		if !there {
			list = append(list, f)
		}
	}
	return list, nil
}

// isThere reports whether the folder has the file with its content.
func (p *puller) isThere(ctx context.Context, f File) (bool, error) {
	at := p.path(f)
	if err := atomicfile.Check(at); err != nil {
		return false, err
	}
	st, err := os.Stat(at)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	// By the size first: files of other sizes differ without being read.
	same := st.Size() == f.Size
	if same {
		there := File{Path: at}
		if err := there.sum(ctx, p.meter); err != nil {
			return false, err
		}
		if same = there.SHA256 == f.SHA256; !same {
			// It is downloaded, and counts then.
			p.meter.Add(-there.Size)
		}
	}
	if !same && !p.o.Overwrite {
		return false, &ConflictError{at, fmt.Sprintf("%d bytes", st.Size())}
	}
	return same, nil
}

// download downloads a file.
func (p *puller) download(ctx context.Context, f File) error {
	p.mu.Lock()
	out, err := p.set.Resume(p.path(f), f.Key())
	p.mu.Unlock()
	if err != nil {
		return err
	}
	d := &download{puller: p, f: f, out: out, v: newVerifier(f)}
	return errors.Join(d.run(ctx), out.Close())
}

// discard removes the downloaded parts if a later pull will not continue from it: the disk is full, or the content is
// wrong.
func (p *puller) discard(err error, files []File) error {
	if isTransfer(err) {
		return err
	}
	for _, f := range files {
		err = errors.Join(err, p.set.Remove(p.path(f)))
	}
	return err
}

// A download is the download of one file.
type download struct {
	*puller
	f   File
	out *atomicfile.File
	v   *verifier

	resumed bool // it begins with bytes that an earlier pull left
}

// run resumes after the part that is there, and after every interruption of the transfer.
func (d *download) run(ctx context.Context) error {
	if err := d.resume(ctx); err != nil {
		return err
	}
	// The loop below is the repetition: each request is sent once.
	ctx = transfer.InStep(ctx)
	for series := retry.NewSeries(d.o.Backoff); ; {
		before := d.v.read
		var err error
		if d.v.read < d.f.Size {
			err = d.transfer(ctx)
		}
		if err == nil {
			err = d.v.check()
			// What an earlier pull left may be damaged, as after a power failure: that is no fault of the source, which is
			// read once more from the beginning.
			if err != nil && d.resumed {
				if err = d.restart(); err == nil {
					continue
				}
			}
			return err
		}
		// Progress: a connection that breaks after every gigabyte still transfers a file of any size.
		if d.v.read > before {
			series.Progress()
		}
		if !IsTransient(err) || !series.Wait(ctx, err) {
			return err
		}
	}
}

// resume verifies the part that an interrupted download left. One that is complete and wrong is dropped.
func (d *download) resume(ctx context.Context) error {
	st, err := d.out.Stat()
	if err != nil {
		return d.out.Fail(err)
	}
	// The part of an earlier pull is hashed first: SHA-256 of the whole continues from it.
	if st.Size() <= d.f.Size {
		if _, err := io.Copy(d.v, d.meter.Reader(ctx, d.out)); err != nil {
			return d.out.Fail(err)
		}
	}
	if st.Size() > d.f.Size || st.Size() == d.f.Size && d.v.check() != nil {
		return d.restart()
	}
	d.resumed = d.v.read > 0
	return nil
}

// restart drops the downloaded part.
func (d *download) restart() error {
	d.resumed = false
	d.meter.Add(-d.v.read)
	d.v = newVerifier(d.f)
	if _, err := d.out.Seek(0, io.SeekStart); err != nil {
		return d.out.Fail(err)
	}
	return d.out.Fail(d.out.Truncate(0))
}

// transfer appends the bytes of the response. Its errors are those of the registry, of the file and of the content.
func (d *download) transfer(ctx context.Context) error {
	content, start, err := d.open(ctx, d.f, d.v.read)
	if err != nil {
		return err
	}
	defer content.Close()
	// A registry without ranges sends the whole file.
	if start != d.v.read {
		if err := d.restart(); err != nil {
			return err
		}
	}
	from := d.meter.Reader(ctx, content)
	for buffer := make([]byte, 1<<16); ; {
		n, err := from.Read(buffer)
		// Before the file is written: a registry that sends more than it lists does not fill the disk.
		if _, wrong := d.v.Write(buffer[:n]); wrong != nil {
			return wrong
		}
		if _, full := d.out.Write(buffer[:n]); full != nil {
			return d.out.Fail(full)
		}
		d.downloaded.Add(int64(n))
		switch {
		case errors.Is(err, io.EOF) && d.v.read < d.f.Size:
			return &TransferError{
				Reference: d.Reference,
				Err:       fmt.Errorf("%s: the registry sent %d of %d bytes", d.f.Name, d.v.read, d.f.Size),
			}
		case errors.Is(err, io.EOF):
			return nil
		// An interruption is no error of the registry, which would be retried.
		case err != nil && context.Cause(ctx) != nil:
			return err
		case err != nil:
			return &TransferError{Reference: d.Reference, Err: fmt.Errorf("%s: %w", d.f.Name, err)}
		}
	}
}
