package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// timeout is the limit for one request.
const timeout = 2 * time.Minute

// environment of processes: one thread, short messages, and no usage statistics, which OpenVINO sends unless it runs in
// CI.
var environment = []string{"RUST_BACKTRACE=0", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
	"OPENCV_LOG_LEVEL=SILENT", "PYTHONWARNINGS=ignore", "CI=true"}

// A request is to load and run a model.
type request struct {
	Model    string
	Inputs   []conform.Array
	Baseline string  `json:",omitempty"` // a model to measure in turn with Model
	Seconds  float64 `json:",omitempty"` // of measurement
}

// An answer has outputs, or an error and the stage it occurred in: start, load, run or baseline.
type answer struct {
	Outputs            []conform.Array
	Resident           int64   // growth of resident memory by loading; 0 if unknown
	Memory             int64   // growth of the peak of resident memory by loading and the first run; 0 if unknown
	Time, BaselineTime float64 // minimum of a run in seconds
	Stage, Error       string
}

// A worker serves requests in a runtime. The answer to a request that ends the worker has the error.
type worker interface {
	ask(request) answer
	close()
}

func start(r runtime) (worker, error) {
	root, err := conform.Root()
	if err != nil {
		return nil, err
	}
	command, err := r.command(root)
	if err != nil {
		return nil, err
	}
	if r.Browser {
		return openBrowser(root)
	}
	return &process{command: command}, nil
}

// A process is a worker on stdin and stdout, started with the first request and again after it has died.
type process struct {
	command []string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  bytes.Buffer
}

func (p *process) ask(q request) answer {
	if p.cmd == nil {
		if err := p.launch(); err != nil {
			return answer{Stage: "start", Error: err.Error()}
		}
	}
	timer := time.AfterFunc(timeout, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	var a answer
	if err := p.exchange(q, &a); err != nil {
		p.close()
		lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
		return answer{Stage: "start", Error: fmt.Sprintf("the process died: %s", lines[len(lines)-1])}
	}
	return a
}

func (p *process) launch() error {
	p.stderr.Reset()
	cmd := conform.Command(p.command[0], p.command[1:]...)
	cmd.Env = append(cmd.Env, environment...)
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = time.Second // for processes that the worker started and that hold stderr
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out, p.cmd = bufio.NewReader(out), cmd
	return cmd.Start()
}

func (p *process) exchange(q request, a *answer) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, a)
}

func (p *process) close() {
	if p.cmd == nil {
		return
	}
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.cmd = nil
}
