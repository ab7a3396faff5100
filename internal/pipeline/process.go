package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mcompress/mcompress/ir"
)

// A request is a run of one file in a process. The first message to a process is its Settings; its first reply is
// empty, when all files are open.
type request struct {
	File   string
	Inputs map[string]*ir.Array
}

// A Process is a device in a process of its own, with requests on its standard input and replies on its standard
// output, in the encoding of encoding/gob. It ends when its input is closed, so also when the parent ends in any way.
type Process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	to     *gob.Encoder
	from   *gob.Decoder
	stderr bytes.Buffer
	bytes  int64 // that were exchanged
	ended  error // set when the process has ended
}

// Start starts a program that calls Serve.
func Start(ctx context.Context, s Settings, program string, args ...string) (*Process, error) {
	life, cancel := context.WithCancel(ctx)
	p := &Process{cmd: exec.CommandContext(life, program, args...), cancel: cancel}
	// Without WaitDelay, Wait would not return while a process that outlives the canceled one keeps its standard
	// error open.
	p.cmd.Stderr, p.cmd.WaitDelay = &p.stderr, time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, errors.Join(err, in.Close())
	}
	p.in, p.to = in, gob.NewEncoder(counter{in, &p.bytes})
	p.from = gob.NewDecoder(io.TeeReader(out, counter{io.Discard, &p.bytes}))
	if _, err := p.exchange(ctx, s); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// A counter counts the bytes that are written.
type counter struct {
	io.Writer
	n *int64
}

func (c counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	*c.n += int64(n)
	return n, err
}

// Run runs one of the files. If ctx ends, so does the process.
func (p *Process) Run(ctx context.Context, file string, in map[string]*ir.Array) (*Reply, error) {
	return p.exchange(ctx, request{file, in})
}

func (p *Process) exchange(ctx context.Context, message any) (*Reply, error) {
	if p.ended != nil {
		return nil, p.ended
	}
	// A read of a pipe does not end with a context: the process is killed, which ends it.
	defer context.AfterFunc(ctx, p.cancel)()
	before, r := p.bytes, &Reply{}
	err := p.to.Encode(message)
	if err == nil {
		err = p.from.Decode(r)
	}
	r.Bytes = p.bytes - before
	switch {
	case err != nil:
		return nil, p.end(ctx, err)
	case r.Error != "":
		return nil, errors.New(r.Error)
	}
	return r, nil
}

// end ends a process that does not reply, waits for it, and returns the reason: ctx has ended, or the process, or a
// message is not valid.
func (p *Process) end(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	// After an end of the pipe the process is about to end by itself, with a message of its own on standard error,
	// which a kill would cut off. In any other case it may wait for ever.
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.EPIPE) {
		p.cancel()
	}
	state := p.cmd.Wait()
	p.cancel()
	line, _, _ := strings.Cut(strings.TrimSpace(p.stderr.String()), "\n")
	switch {
	case cause != nil:
		p.ended = cause
	case line != "": // the cause is text: its exit code is not that of this program
		p.ended = fmt.Errorf("the process ended: %v: %s", cmp.Or(state, err), line)
	default:
		p.ended = fmt.Errorf("the process ended: %v", cmp.Or(state, err))
	}
	return p.ended
}

// Close ends the process and waits for it.
func (p *Process) Close() error {
	if p.ended != nil {
		return nil
	}
	// The end of its input is the request to end.
	err := errors.Join(p.in.Close(), p.cmd.Wait())
	p.cancel()
	p.ended = errors.New("the process was closed")
	return err
}

// Serve is the other side of a Process: it opens the files and runs them until in ends. An error before a reply is in
// the reply.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, to := gob.NewDecoder(in), gob.NewEncoder(out)
	var s Settings
	if err := from.Decode(&s); err != nil {
		return err
	}
	l, err := openLocal(ctx, s)
	if err != nil {
		return to.Encode(Reply{Error: err.Error()})
	}
	defer l.Close()
	if err := to.Encode(Reply{}); err != nil {
		return err
	}
	requests := make(chan request)
	go func() { // a run is canceled when the parent ends
		defer cancel()
		defer close(requests)
		for {
			var r request
			if from.Decode(&r) != nil {
				return
			}
			requests <- r
		}
	}()
	for r := range requests {
		reply, err := l.Run(ctx, r.File, r.Inputs)
		if err != nil {
			reply = &Reply{Error: err.Error()}
		}
		if err := to.Encode(reply); err != nil {
			return err
		}
	}
	return nil
}
