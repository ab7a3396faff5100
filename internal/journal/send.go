package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A sender is the state of sending the log of a process to a mirror.
type sender struct {
	turn sync.Mutex // held while it is sent

	state  sync.Mutex // of the following
	pushed int64      // of the bytes of the log
	timer  *time.Timer
	failed error // of the last push
}

// The results of this process are sent after delay, and at once if they have backlog bytes.
const (
	delay   = 5 * time.Second
	backlog = 64 << 20
)

// Add keeps the result of a unit, as that of a Journal does. If results could not be sent, they are sent with the next
// one, or that is an error.
func (g *Group) Add(ctx context.Context, unit string, parts ...[]byte) ([]*io.SectionReader, error) {
	made, err := g.Journal.Add(ctx, unit, parts...)
	if err != nil {
		return nil, err
	}
	if g.schedule() {
		return made, nil
	}
	return made, g.push(ctx)
}

// log is the open log and its length; nil before the first result.
func (g *Group) log() (*os.File, int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.file, g.end
}

// schedule sends the results of this process soon. It returns false if they are to be sent at once.
func (g *Group) schedule() bool {
	_, end := g.log()
	g.state.Lock()
	defer g.state.Unlock()
	if g.timer == nil && end > g.pushed {
		g.timer = time.AfterFunc(delay, func() { _ = g.push(g.ctx) })
	}
	return end-g.pushed < backlog && g.failed == nil
}

// unschedule ends what schedule has begun.
func (g *Group) unschedule() {
	g.state.Lock()
	defer g.state.Unlock()
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
}

// push sends the results that this process has.
func (g *Group) push(ctx context.Context) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	// What the timer would send is sent now; results that are added meanwhile set another one.
	g.unschedule()
	file, end := g.log()
	if file == nil || end == g.pushed {
		return nil
	}
	// Records without the identity would be those of an unknown job to the others. The identity is appended
	// meanwhile, hence the second look at the end.
	g.identityAdded.Wait()
	file, end = g.log()
	err := g.mirror.Push(ctx, g.entry(g.index, logName), file, end)
	g.state.Lock()
	defer g.state.Unlock()
	if g.failed = err; err == nil {
		g.pushed = end
	}
	return err
}

// Lock keeps other processes of the same index from computing units. An error is an *atomicfile.BusyError if one does.
// With a mirror this process succeeds the others, which cannot add results from then on, nor call Lock again.
func (g *Group) Lock(ctx context.Context) error {
	// The log of a mirror is replaced only if it is what this process last saw: a random unit makes the logs of
	// two processes of one index differ, so that the other one's next push fails.
	if _, err := g.Add(ctx, "lock "+rand.Text()); err != nil {
		return err
	}
	return g.push(ctx)
}

// ended is the unit of a worker that has computed all of its units.
const ended = "end"

// End records that this worker has computed all of its units, after it has sent its files.
func (g *Group) End(ctx context.Context) error {
	if g.Ended() {
		return nil
	}
	files, err := g.kept()
	if err != nil {
		return err
	}
	// Files before the record: who finds the record may fetch all of them.
	for _, name := range files {
		if _, complete := g.Journal.Result(strings.TrimPrefix(name, filePrefix)); complete {
			if err := g.mirror.Store(ctx, g.entry(g.index, name)); err != nil {
				return err
			}
		}
	}
	if _, err := g.Add(ctx, ended); err != nil {
		return err
	}
	return g.push(ctx)
}

// kept are the names of the files of File of this process.
func (g *Group) kept() (names []string, err error) {
	entries, err := os.ReadDir(g.dir(g.index))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, f := range entries {
		if strings.HasPrefix(f.Name(), filePrefix) {
			names = append(names, f.Name())
		}
	}
	return names, err
}

// closeTimeout limits the time in which Close sends results.
const closeTimeout = 20 * time.Second

// Close closes the journals. It sends the results that this process has, also after its context ended, unless an error
// of sending them was returned.
func (g *Group) Close() error {
	// An interrupted worker still sends what it has computed, but a bucket that does not answer must not keep it
	// from ending.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), closeTimeout)
	defer cancel()
	g.state.Lock()
	failed := g.failed
	g.state.Unlock()
	var err error
	if failed == nil || g.ctx.Err() != nil {
		err = g.push(ctx)
	}
	return errors.Join(err, g.close())
}

// close closes the journals, after a push that has begun.
func (g *Group) close() error {
	g.turn.Lock()
	defer g.turn.Unlock()
	err := g.Journal.Close() // a push that is scheduled finds no log
	for _, l := range g.others {
		if l.file != nil {
			l.forget()
		}
	}
	return err
}
