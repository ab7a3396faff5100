package conform

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// ErrDied is returned if the worker ends during a request, as ONNX Runtime crashes on
// some broken models. The next request starts a new one.
var errDied = errors.New("the worker died")

// timeout is the limit for one request: below the ten minutes after which
// `go test` kills the whole binary without naming the model.
const timeout = 4 * time.Minute

// A Worker serves requests about models, one at a time. It is safe for parallel tests.
type Worker struct {
	mu      sync.Mutex
	process *process // nil before the first request and after a crash
}

// shared is the worker of all tests of a binary, as loading the libraries takes longer
// than most requests. It ends with the binary, whose end closes its input.
var shared = sync.OnceValue(func() *Worker { return new(Worker) })

// call sends a request and decodes the answer into result, unless that is nil.
func (w *Worker) call(op string, args map[string]any, result any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		p, err := launch()
		if err != nil {
			return fmt.Errorf("conform: %w", err)
		}
		w.process = p
	}
	answer, err := w.process.call(op, args)
	if err != nil {
		why := w.process.end()
		w.process = nil
		return fmt.Errorf("conform: %s: %w: %s", op, err, why)
	}
	if answer.Error != "" {
		return fmt.Errorf("%s: %s", op, answer.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

// A process is one run of worker.py.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	stderr  *tail
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

func launch() (*process, error) {
	python, err := pythonPath()
	if err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(root, "internal", "dev", "conform")
	if err := touch(folder); err != nil {
		return nil, err
	}
	p := &process{stderr: &tail{}}
	p.cmd = Command(python, filepath.Join(folder, "worker.py"))
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// Command is a command of a Python. Bytecode is stored in its virtual environment when a module is first imported,
// since .ci/venv compiles none; another Python stores none, so that folders of sources stay clean.
func Command(python string, args ...string) *exec.Cmd {
	c := exec.Command(python, args...)
	environment := filepath.Dir(filepath.Dir(python))
	if _, err := os.Stat(filepath.Join(environment, "pyvenv.cfg")); err != nil {
		c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		return c
	}
	c.Env = append(os.Environ(), "PYTHONPYCACHEPREFIX="+filepath.Join(environment, "bytecode"),
		"PYTHONDONTWRITEBYTECODE=")
	return c
}

// touch reads the metadata of the worker's sources, so that `go test` runs tests again after one
// of them changed instead of showing a cached result.
func touch(folder string) error {
	for _, pattern := range []string{"*.py", "requirements.txt"} {
		names, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := os.Stat(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *process) call(op string, args map[string]any) (answer, error) {
	timer := time.AfterFunc(timeout, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	request, err := json.Marshal(map[string]any{"op": op, "args": args})
	if err != nil {
		return answer{}, err
	}
	if _, err := p.in.Write(append(request, '\n')); err != nil {
		return answer{}, errDied
	}
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return answer{}, errDied
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, fmt.Errorf("not an answer: %q", line)
	}
	return a, nil
}

// end stops the process and returns its exit status and the end of its stderr.
func (p *process) end() string {
	p.in.Close()
	p.cmd.Process.Kill()
	err := p.cmd.Wait()
	return fmt.Sprintf("%v: %s", err, p.stderr)
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const keep = 2 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-keep):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
