package mcompress

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/internal/remote"
)

// A scratchFolder is a folder on disk for what is at a URL in the end. An interrupted run leaves it for the next one.
type scratchFolder struct {
	dir  string
	root *os.Root // dir
	lock *os.File
}

// lockName is the file that the process of a scratch folder locks.
const lockName = "lock"

// newScratch makes the scratch folder of a kind for a URL, below the user's folder of caches. The key distinguishes
// several for one URL.
func newScratch(kind, url, key string) (*scratchFolder, error) {
	cache, err := os.UserCacheDir()
	if err != nil { // neither XDG_CACHE_HOME nor HOME, as in some containers
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(url + key))
	dir := filepath.Join(cache, "mcompress", kind, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// In a folder of temporary files another user may have made it before.
	root, err := atomicfile.OpenExisting(dir)
	if err != nil {
		return nil, err
	}
	// Two processes for one URL would write the same files. The lock of a killed process is free.
	lock, err := atomicfile.OpenLocked(root, lockName, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", url, err), root.Close())
	}
	return &scratchFolder{dir, root, lock}, nil
}

// leave removes the folder, unless it has what an interrupted run continues with.
func (s *scratchFolder) leave() {
	_ = s.lock.Close()
	defer s.root.Close()
	// The lock alone.
	if entries, err := fs.ReadDir(s.root.FS(), "."); err == nil && len(entries) == 1 {
		_ = s.root.Remove(lockName)
		_ = os.Remove(s.dir)
	}
}

// A staged result is written to disk, in a folder of its own, and then uploaded to its URL. What an interrupted run
// left is in the same folder.
type staged struct {
	*scratchFolder
	url  string
	path string // of the result on disk

	source string // the tag of a source at a URL, by which --if-changed recognizes it; empty for none
}

// stage makes the folder of the result at url.
func stage(url string) (*staged, error) {
	s, err := newScratch("results", url, "")
	if err != nil {
		return nil, err
	}
	// What a killed process was writing; its journal stays.
	atomicfile.Sweep(s.dir)
	return &staged{scratchFolder: s, url: url, path: filepath.Join(s.dir, remote.Base(url))}, nil
}

// stage is that of a result of this run. A result that cannot be written to its URL is an error before the work. A
// result that was not uploaded is of use to --if-changed only, which recognizes it.
func (x *run) stage(ctx context.Context, model, url string) (*staged, error) {
	s, err := stage(url)
	if err != nil || x.DryRun {
		return s, err
	}
	// Without IfChanged a result that was not uploaded is made again, as nothing compares it with the request.
	if err = remote.CheckWritable(ctx, url); err == nil && !x.List.IfChanged {
		err = s.clear()
	}
	// Before the model is read: if it is replaced then, its result is not up to date.
	if err == nil && x.List.IfChanged && remote.Is(model) {
		s.source, err = remote.ModelTag(ctx, model)
	}
	if err != nil {
		s.leave()
		return nil, err
	}
	return s, nil
}

// uploadable is the result of an earlier run of the same request that was not uploaded; nil if there is none.
func (x *run) uploadable(ctx context.Context, m listed) (*Result, error) {
	res, _, err := job.Done(ctx, job.Options{Input: m.model, Output: m.output, Request: x.digest,
		ReportDir: x.Reports.Dir})
	if res != nil {
		// It is not up to date for the caller, but still to be uploaded.
		res.Done = false
		return resultOf(res, nil), err
	}
	return nil, errors.Join(err, m.staged.clear())
}

// publish uploads the files of the result of a model, the model last, and names them in res by their URLs. Those that
// the workers of a division have uploaded are copied.
func (s *staged) publish(ctx context.Context, d *division, model string, res *Result) error {
	// The result is at the URL: nothing is staged.
	if res.UpToDate && remote.Is(res.Output) {
		return nil
	}
	files, err := s.uploads(ctx, res)
	if err != nil {
		return err
	}
	// After the run, as the data files of a source are known from its model only.
	for _, part := range res.Report.Source.Files {
		if at := remote.NextTo(model, part.Name); slices.ContainsFunc(files, func(f remote.Upload) bool {
			return job.SameFile(f.URL, at)
		}) {
			return fieldErrorf("%s: the output would overwrite %s, which the input needs; name another file with {Output}",
				s.url, part.Name)
		}
	}
	if err := d.upload(ctx, files); err != nil {
		return err
	}
	for _, p := range append(slices.Clone(res.Reports), res.Output) {
		if i := slices.IndexFunc(files, func(f remote.Upload) bool { return f.Path == p }); i >= 0 {
			s.rename(res, p, files[i].URL)
		}
	}
	// After the upload: an interruption before leaves the complete result, which uploadable finds.
	return s.clear()
}

// rename replaces the path of a file in res by its URL.
func (s *staged) rename(res *Result, path, url string) {
	if res.Output == path {
		res.Output = url
	}
	if i := slices.Index(res.Reports, path); i >= 0 {
		res.Reports[i] = url
	}
}

// uploads are the files in the folder with the digests of the report, the model last.
func (s *staged) uploads(ctx context.Context, res *Result) (files []remote.Upload, err error) {
	paths, err := s.files()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return nil, err
		}
		u := remote.Upload{Path: path, URL: remote.Join(remote.Dir(s.url), filepath.ToSlash(name)), Source: s.source}
		for _, f := range res.Report.Result.Files {
			if f.Name == filepath.ToSlash(name) {
				u.SHA256 = f.SHA256
			}
		}
		if u.SHA256 == "" {
			if u.SHA256, _, err = digest.File(ctx, path, nil); err != nil {
				return nil, err
			}
		}
		files = append(files, u)
	}
	if i := slices.IndexFunc(files, func(f remote.Upload) bool { return f.Path == res.Output }); i >= 0 {
		// Who reads the model finds all its other files.
		model := files[i]
		files = append(slices.Delete(files, i, i+1), model)
	}
	return files, nil
}

// files are the paths of the files of the result, without those of a process that was killed while it wrote them.
func (s *staged) files() (paths []string, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == journal.Folder(s.path) || atomicfile.IsFolder(d.Name())):
			return fs.SkipDir
		case d.Type().IsRegular() && path != s.lock.Name():
			paths = append(paths, path)
		}
		return nil
	})
	return paths, err
}

// clear removes the files of the result.
func (s *staged) clear() error {
	paths, err := s.files()
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
