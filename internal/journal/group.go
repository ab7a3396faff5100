package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/ir"
)

// A Group is the journal of one of several processes that divide the units of a job, each with a log of its own in one
// folder: it has the results of all. Its methods may be called concurrently, but for Refresh.
type Group struct {
	*Journal
	ctx    context.Context // of what is sent in the background
	folder string
	mirror Mirror
	index  int
	others []*log // by index; that of this process is empty

	sender
}

// A log is the journal of another process, for reading.
type log struct {
	*Journal
	sound bool // it is that of the same job
}

// Join returns the journal of worker number index of count workers, from 0, or with index count that of the process
// that uses all their results and computes what is missing. The folder is that of this process alone if there is a
// mirror; a nil one is none. An error is a *ForeignError if folder has results of another job.
func Join(ctx context.Context, folder string, index, count int, id Identity, m Mirror) (*Group, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	m = orSharedFolder(m)
	identify := func(context.Context) (Identity, error) { return id, nil }
	g := &Group{ctx: ctx, folder: folder, mirror: m, index: index, others: make([]*log, count)}
	for i := range g.others {
		// Without file and cancel: refresh opens the log for reading only, as its own process has it locked.
		l := &Journal{dir: g.dir(i), parts: map[string][]*io.SectionReader{}}
		l.identify = func() (Identity, error) { return id, nil }
		g.others[i] = &log{Journal: l}
	}
	// Before the own log is opened: the process that had this part on another machine may have pushed results,
	// which this one continues.
	if err := m.Pull(ctx, g.entry(index, logName)); err != nil {
		return nil, err
	}
	own, err := newIn(ctx, g.dir(index), identify)
	if err != nil {
		return nil, err
	}
	g.Journal = own
	// Results of an earlier process in this folder may not have been sent before it ended.
	g.schedule()
	if err := g.Refresh(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// name is that of the folder of one of the processes.
func (g *Group) name(index int) string {
	if index == len(g.others) {
		return "final"
	}
	return fmt.Sprintf("%05d", index)
}

func (g *Group) dir(index int) string { return filepath.Join(g.folder, g.name(index)) }

// entry is the name of a file of one of the processes.
func (g *Group) entry(index int, name string) string { return g.name(index) + "/" + name }

// maxPulls is the number of logs that are received at a time.
const maxPulls = 8

// Refresh finds the results that other processes have had since the last call.
func (g *Group) Refresh(ctx context.Context) error {
	pulls, pullCtx := errgroup.WithContext(ctx)
	pulls.SetLimit(maxPulls)
	for i := range g.others {
		if i != g.index {
			pulls.Go(func() error { return g.mirror.Pull(pullCtx, g.entry(i, logName)) })
		}
	}
	if err := pulls.Wait(); err != nil {
		return err
	}
	for i, l := range g.others {
		if i == g.index {
			continue
		}
		if err := l.refresh(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *log) refresh(ctx context.Context) (err error) {
	if l.file == nil {
		l.file, err = os.Open(filepath.Join(l.dir, logName))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	st, err := l.file.Stat()
	if err != nil {
		return err
	}
	// A log of another file, or one that became shorter, is that of a process which began anew with --restart.
	if named, err := os.Stat(l.file.Name()); err != nil || !os.SameFile(st, named) || st.Size() < l.end {
		l.forget() // the process was started anew
		return nil
	}
	// The end may be torn because the other process is just writing it: the next refresh reads the rest.
	if err := l.scan(ctx); err != nil && !errors.Is(err, errTorn) {
		return err
	}
	l.sound, err = l.identified()
	return err
}

// forget closes the log, which the next refresh opens.
func (l *log) forget() {
	_ = l.file.Close()
	l.file, l.end, l.sound = nil, 0, false
	clear(l.parts)
}

// Result returns the parts of the result of a unit that one of the processes has.
func (g *Group) Result(unit string) (parts []*io.SectionReader, ok bool) {
	if parts, ok = g.Journal.Result(unit); ok {
		return parts, ok
	}
	if i := g.owner(unit); i >= 0 {
		return g.others[i].parts[unit], true
	}
	return nil, false
}

// owner is the index of another process that has the result of a unit; -1 if none has.
func (g *Group) owner(unit string) int {
	return slices.IndexFunc(g.others, func(l *log) bool {
		_, ok := l.parts[unit]
		// An unsound log is that of another job in the same folder, whose units have the same names.
		return ok && l.sound
	})
}

// File is the path of the file of the process that has the result of a unit of the same name, or of this process.
// Workers receive only their own.
func (g *Group) File(ctx context.Context, name string) (string, error) {
	index := g.owner(name)
	if index < 0 {
		path, err := g.Journal.File(ctx, name)
		if _, complete := g.Journal.Result(name); complete && err == nil {
			err = g.mirror.Fetch(ctx, g.entry(g.index, filePrefix+name))
		}
		return path, err
	}
	path := filepath.Join(g.dir(index), filePrefix+name)
	if g.index == len(g.others) {
		// Only the process that finalizes reads the bytes. Workers need the path alone, for the identity of a file.
		return path, g.mirror.Fetch(ctx, g.entry(index, filePrefix+name))
	}
	return path, nil
}

// Mine distributes units over the workers, to about equal costs.
func (g *Group) Mine(costs []int64) []bool {
	if g.index == len(g.others) {
		return ir.Mine(nil, costs)
	}
	mine := make([]bool, len(costs))
	for i, worker := range fleet.Assign(costs, len(g.others)) {
		mine[i] = worker == g.index
	}
	return mine
}

// Ended reports whether this worker has computed all of its units.
func (g *Group) Ended() bool {
	_, ok := g.Journal.Result(ended)
	return ok
}

// Missing are the workers that have not computed all of their units.
func (g *Group) Missing() (workers []int) {
	for i, l := range g.others {
		if _, ok := l.parts[ended]; !ok || !l.sound {
			workers = append(workers, i)
		}
	}
	return workers
}

// The logs of other processes are read again after minInterval, or more while there are no new results.
const (
	minInterval = time.Second
	maxInterval = 8 * time.Second
)

// A PatienceError is the end of a wait for other processes.
type PatienceError struct{ patience time.Duration }

// Error states the time.
func (e *PatienceError) Error() string {
	return fmt.Sprintf("no new result of another process for %v", e.patience)
}

// Wait waits until done is true of the results of all processes. It is a *PatienceError if there is no new result for
// so long.
func (g *Group) Wait(ctx context.Context, patience time.Duration, done func() bool) error {
	// The others may wait for results of this process, so that both would wait until their patience ends.
	if err := g.push(ctx); err != nil {
		return err
	}
	count, since, interval := g.results(), time.Now(), minInterval
	for !done() {
		left := patience - time.Since(since)
		if left <= 0 {
			return &PatienceError{patience}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(interval, left)):
		}
		if err := g.Refresh(ctx); err != nil {
			return err
		}
		// A refresh of logs in a bucket is a request for each of them.
		interval = min(2*interval, maxInterval)
		if n := g.results(); n != count {
			count, since, interval = n, time.Now(), minInterval
		}
	}
	return nil
}

// results is the number of results of other processes.
func (g *Group) results() (n int) {
	for _, l := range g.others {
		n += len(l.parts)
	}
	return n
}

// Remove removes the results of all processes.
func (g *Group) Remove(ctx context.Context) error {
	return errors.Join(g.close(), Remove(ctx, g.folder, g.mirror))
}

// Remove removes the results of a group that no process uses, with the mirror of Join.
func Remove(ctx context.Context, folder string, m Mirror) error {
	return errors.Join(os.RemoveAll(folder), orSharedFolder(m).Remove(ctx))
}
