package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
)

// logName is the name of the log in the folder of a journal.
const logName = "journal"

// An Identity is what the results of a job depend on.
type Identity struct {
	Version string `json:"version"` // of mcompress
	Source  string `json:"source"`  // digest of the source
	Request string `json:"request"` // digest of options and of other inputs
}

// Difference is what differs between the job of a journal and another one; empty if nothing does.
func (i Identity) Difference(now Identity) string {
	switch {
	case i.Version != now.Version:
		return fmt.Sprintf("version %s, now %s", i.Version, now.Version)
	case i.Source != now.Source:
		return "another source"
	case i.Request != now.Request:
		return "other options or inputs"
	}
	return ""
}

// A ForeignError is a journal of another job.
type ForeignError struct{ Path, Difference string }

// Error names the folder and the difference.
func (e *ForeignError) Error() string {
	return fmt.Sprintf(
		"%s has the results of an interrupted run with %s; remove it, or start anew with --restart",
		e.Path,
		e.Difference,
	)
}

// A Journal has the results of a job. Its methods may be called concurrently.
type Journal struct {
	dir      string
	root     *os.Root // dir; nil before file is open
	identify func() (Identity, error)
	cancel   context.CancelFunc // of identify

	mu            sync.Mutex
	file          *os.File // nil before the first result
	end           int64
	parts         map[string][]*io.SectionReader
	identityAdded sync.WaitGroup // the identity of a new log
}

// New returns the journal of the job with an output at path. If an interrupted run left results, it opens them: an
// error is a *ForeignError if they are those of another job. Otherwise the folder is made for the first result, and
// identify is called in the background then; results without an identity are of no use to another run.
func New(ctx context.Context, path string, identify func(context.Context) (Identity, error)) (*Journal, error) {
	return newIn(ctx, Folder(path), identify)
}

// newIn is New for a journal in dir.
func newIn(ctx context.Context, dir string, identify func(context.Context) (Identity, error)) (*Journal, error) {
	ctx, cancel := context.WithCancel(ctx)
	j := &Journal{
		dir: dir, identify: func() (Identity, error) { return identify(ctx) }, cancel: cancel,
		parts: map[string][]*io.SectionReader{},
	}
	// The folder is made for the first result, so that a run without one leaves nothing.
	found, err := hasLog(dir)
	if err != nil || !found {
		return j, err
	}
	return j, j.open(ctx)
}

// hasLog reports whether a folder is that of a journal. One that others may have made is an error.
func hasLog(dir string) (bool, error) {
	root, err := atomicfile.OpenExisting(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer root.Close()
	_, err = root.Lstat(logName)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Folder is the folder of the journal of an output.
func Folder(path string) string { return path + ".partial" }

// Discard removes the results that an interrupted run left. It is an error if another process uses them.
func Discard(path string) error {
	j := &Journal{dir: Folder(path)}
	if found, err := hasLog(j.dir); err != nil || !found {
		return err
	}
	if err := j.openLog(); err != nil {
		return err
	}
	return j.Remove()
}

// Result returns the parts of the result of a unit, ok is false if it is not known.
func (j *Journal) Result(unit string) (parts []*io.SectionReader, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	parts, ok = j.parts[unit]
	return parts, ok
}

// Add keeps the result of a unit and returns its parts, which may be read until Close. A second result is an error: it
// would have been computed in vain.
func (j *Journal) Add(ctx context.Context, unit string, parts ...[]byte) ([]*io.SectionReader, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.begin(ctx); err != nil {
		return nil, err
	}
	if _, ok := j.parts[unit]; ok {
		return nil, fmt.Errorf("%s: a second result of %q", j.dir, unit)
	}
	return j.append(unit, parts)
}

// begin opens the log unless it is open.
func (j *Journal) begin(ctx context.Context) error {
	if j.file != nil {
		return nil
	}
	return j.open(ctx)
}

// open opens the log, or begins it.
func (j *Journal) open(ctx context.Context) (err error) {
	if err := j.openLog(); err != nil {
		return err
	}
	if err := j.readLog(ctx); err != nil {
		return errors.Join(err, j.closeLog())
	}
	if _, ok := j.parts[identity]; !ok {
		// In the background, as the digest of the source takes as long as reading all of it.
		j.identityAdded.Go(j.begun)
	}
	return nil
}

// openLog opens the folder and the log, and makes them if they are missing. The results in a folder that others may write
// to are not those of an earlier run of this user.
func (j *Journal) openLog() (err error) {
	if j.root, err = atomicfile.OpenPrivate(j.dir); err != nil {
		return err
	}
	if j.file, err = atomicfile.OpenLocked(j.root, logName, 0o600); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", j.dir, err), j.root.Close())
	}
	return nil
}

func (j *Journal) closeLog() error {
	err := j.file.Close()
	if j.root != nil {
		err = errors.Join(err, j.root.Close())
	}
	j.file, j.root = nil, nil
	return err
}

// identity is the unit whose result is the identity of the job.
const identity = ""

// readLog reads the results of an interrupted run of the same job. A run that ended before its identity was computed
// left none.
func (j *Journal) readLog(ctx context.Context) error {
	err := j.scan(ctx)
	// Records are not flushed to the disk one by one: a kill leaves a part of the last, whose unit is computed again.
	if errors.Is(err, errTorn) {
		err = j.file.Truncate(j.end)
	}
	if err != nil {
		return err
	}
	found, err := j.identified()
	// Without an identity nobody knows whose results these are; the next record would be appended to them.
	if !found && err == nil {
		clear(j.parts)
		j.end = 0
		return j.file.Truncate(0)
	}
	return err
}

// identified reports whether the log has an identity. That of another job is an error.
func (j *Journal) identified() (bool, error) {
	parts, ok := j.parts[identity]
	if !ok {
		return false, nil
	}
	var was Identity
	if err := bounded.ReadJSON(io.NewSectionReader(parts[0], 0, parts[0].Size()), math.MaxInt64, &was); err != nil {
		return true, &ForeignError{j.dir, "an unknown format"}
	}
	now, err := j.identify()
	if err != nil {
		return true, err
	}
	if d := was.Difference(now); d != "" {
		return true, &ForeignError{j.dir, d}
	}
	return true, nil
}

// begun adds the identity to a new log. Without it the results are of no use to another run.
func (j *Journal) begun() {
	now, err := j.identify()
	if err != nil {
		return // the job itself reads the same files
	}
	if text, err := json.Marshal(now); err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		_, _ = j.append(identity, [][]byte{text})
	}
}

// filePrefix begins the names of the files of File.
const filePrefix = "file."

// File is the path of a file of the job with results that are not in the log. Remove removes it.
func (j *Journal) File(ctx context.Context, name string) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return filepath.Join(j.dir, filePrefix+name), j.begin(ctx)
}

// Mine reports that all units are those of this process.
func (j *Journal) Mine(costs []int64) []bool { return ir.Mine(nil, costs) }

// Remove removes the journal, whose results are no longer needed. Other files in its folder stay.
func (j *Journal) Remove() error {
	if err := j.Close(); err != nil {
		return err
	}
	root, err := atomicfile.OpenExisting(j.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := fs.ReadDir(root.FS(), ".")
	left := len(files)
	for _, f := range files {
		if f.Name() == logName || strings.HasPrefix(f.Name(), filePrefix) {
			err = errors.Join(err, root.Remove(f.Name()))
			left--
		}
	}
	// Files that are not of the journal stay, and the folder with them.
	if err != nil || left > 0 {
		return err
	}
	return os.Remove(j.dir)
}

// Close closes the journal. Its results stay for the next run, if their identity is known by now.
func (j *Journal) Close() error {
	// A run that ended early does not wait for the digest of a source of hundreds of gigabytes: its results are
	// then of no use to the next one.
	if j.cancel != nil {
		j.cancel()
	}
	j.identityAdded.Wait()
	if j.file == nil {
		return nil
	}
	return j.closeLog()
}
