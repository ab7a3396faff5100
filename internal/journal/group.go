package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/ir"
)

// A Group is the journal of one of several processes that divide the units of a job, each with a log of its own in one folder: it has the results of all. Its
// methods may be called concurrently, but for Refresh.
type Group struct {
	*Journal
	folder string
	index  int
	others []*log // by index; that of this process is empty
}

// A log is the journal of another process, for reading.
type log struct {
	*Journal
	sound bool // it is that of the same job
}

// Join returns the journal of worker number index of count workers, from 0, or with index count that of the process that uses all their results and computes
// what is missing. An error is a *ForeignError if folder has results of another job.
func Join(ctx context.Context, folder string, index, count int, id Identity) (*Group, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	identify := func(context.Context) (Identity, error) { return id, nil }
	g := &Group{folder: folder, index: index}
	own, err := at(ctx, g.dir(index, count), identify)
	if err != nil {
		return nil, err
	}
	g.Journal = own
	for i := range count {
		g.others = append(g.others, &log{Journal: &Journal{
			dir: g.dir(i, count), identify: own.identify, known: map[string][]*io.SectionReader{},
		}})
	}
	if err := g.Refresh(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// dir is the folder of one of the processes.
func (g *Group) dir(index, count int) string {
	if index == count {
		return filepath.Join(g.folder, "final")
	}
	return filepath.Join(g.folder, fmt.Sprintf("%05d", index))
}

// Refresh finds the results that other processes have had since the last call.
func (g *Group) Refresh(ctx context.Context) error {
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
	if named, err := os.Stat(l.file.Name()); err != nil || !os.SameFile(st, named) || st.Size() < l.end {
		l.forget() // the process was started anew
		return nil
	}
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
	clear(l.known)
}

// Result returns the parts of the result of a unit that one of the processes has.
func (g *Group) Result(unit string) (parts []*io.SectionReader, ok bool) {
	if parts, ok = g.Journal.Result(unit); ok {
		return parts, ok
	}
	if l := g.owner(unit); l != nil {
		return l.known[unit], true
	}
	return nil, false
}

// owner is the log of another process that has the result of a unit; nil if none has.
func (g *Group) owner(unit string) *log {
	for _, l := range g.others {
		if _, ok := l.known[unit]; ok && l.sound {
			return l
		}
	}
	return nil
}

// File is the path of the file of the process that has the result of a unit of the same name, or of this process.
func (g *Group) File(ctx context.Context, name string) (string, error) {
	if l := g.owner(name); l != nil {
		return filepath.Join(l.dir, filePrefix+name), nil
	}
	return g.Journal.File(ctx, name)
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

// Lock keeps other processes of the same index from computing units. An error is an *atomicfile.BusyError if one does.
func (g *Group) Lock(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begin(ctx)
}

// ended is the unit of a worker that has computed all of its units.
const ended = "end"

// End records that this worker has computed all of its units.
func (g *Group) End(ctx context.Context) error {
	if _, ok := g.Journal.Result(ended); ok {
		return nil
	}
	_, err := g.Add(ctx, ended)
	return err
}

// Ended reports whether this worker has computed all of its units.
func (g *Group) Ended() bool {
	_, ok := g.Journal.Result(ended)
	return ok
}

// Missing are the workers that have not computed all of their units.
func (g *Group) Missing() (workers []int) {
	for i, l := range g.others {
		if _, ok := l.known[ended]; !ok || !l.sound {
			workers = append(workers, i)
		}
	}
	return workers
}

// interval is the time after which the logs of other processes are read again.
const interval = time.Second

// Wait waits until done is true of the results of all processes, whose logs it reads each second. It is an error if there is no new result for so long.
func (g *Group) Wait(ctx context.Context, patience time.Duration, done func() bool) error {
	count, since := g.results(), time.Now()
	for !done() {
		if time.Since(since) >= patience {
			return fmt.Errorf("%s: no new result of another process for %v", g.folder, patience)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(interval):
		}
		if err := g.Refresh(ctx); err != nil {
			return err
		}
		if n := g.results(); n != count {
			count, since = n, time.Now()
		}
	}
	return nil
}

// results is the number of results of other processes.
func (g *Group) results() (n int) {
	for _, l := range g.others {
		n += len(l.known)
	}
	return n
}

// Close closes the journals.
func (g *Group) Close() error {
	err := g.Journal.Close()
	for _, l := range g.others {
		if l.file != nil {
			l.forget()
		}
	}
	return err
}

// Remove removes the results of all processes.
func (g *Group) Remove() error { return errors.Join(g.Close(), os.RemoveAll(g.folder)) }
