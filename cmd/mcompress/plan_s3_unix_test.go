//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mcompress/mcompress/internal/remote"
)

// The files in the folder of a plan, besides the result.
const (
	planFile   = "plan.json"
	resultFile = "finalized.json"
)

// A cluster is machines that run mcompress and share no file system, but a bucket.
type cluster struct {
	*bucket
	program string
}

func newCluster(t *testing.T, fixtures ...string) *cluster {
	return &cluster{startBucket(t, fixtures...), filepath.Join(programFolder(t), "mcompress")}
}

// command is a process on a machine, which is a folder.
func (c *cluster) command(machine, args string) (p *exec.Cmd, stderr *bytes.Buffer) {
	p, stderr = exec.Command(c.program, strings.Fields(args)...), &bytes.Buffer{}
	p.Stderr, p.Dir, p.Env = stderr, machine, append(os.Environ(), "XDG_CACHE_HOME="+machine, "TMPDIR="+machine)
	return p, stderr
}

// runs runs a process to its end, and returns what it printed on stderr.
func (c *cluster) runs(t *testing.T, code int, machine, args string) string {
	t.Helper()
	p, stderr := c.command(machine, args)
	if err := p.Run(); p.ProcessState.ExitCode() != code {
		t.Fatalf("%s: %v, want exit code %d: %s", args, err, code, stderr)
	}
	return stderr.String()
}

// empty checks that nothing of a plan is left on a machine.
func empty(t *testing.T, machine string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(machine, "mcompress", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

// signalled runs a process that gets a signal when it sends a request whose method and path contain these texts, which
// the server does not receive.
func (c *cluster) signalled(t *testing.T, s syscall.Signal, machine, args, method, path string) {
	t.Helper()
	p, stderr := c.command(machine, args)
	var done atomic.Bool
	c.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.Contains(r.URL.String(), path) || !done.CompareAndSwap(false, true) {
			return false
		}
		_ = p.Process.Signal(s)
		panic(http.ErrAbortHandler)
	})
	defer c.answer(nil)
	if err := p.Run(); err == nil || !done.Load() {
		t.Fatalf("%s has ended before %s %s: %v: %s", args, method, path, err, stderr)
	}
}

// put writes an object.
func (c *cluster) put(t *testing.T, url, text string) {
	t.Helper()
	if err := remote.Create(t.Context(), url, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// sameResults checks that the folder of a plan has the files of a run of one process in another one, and nothing else.
func (c *cluster) sameResults(t *testing.T, plan, one string) {
	t.Helper()
	files := func(folder string) (names []string) {
		err := filepath.WalkDir(filepath.Join(c.folder, folder), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				names = append(names, strings.TrimPrefix(path, filepath.Join(c.folder, folder)+"/"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	want := files(one)
	all := append([]string{planFile, resultFile}, want...)
	slices.Sort(all)
	if got := files(plan); !slices.Equal(got, all) || len(want) == 0 {
		t.Errorf("%s has %v, want %v", plan, got, all)
	}
	for _, name := range want {
		if !strings.HasSuffix(name, ".environment.json") && !strings.HasSuffix(name, ".html") { // which has it
			c.same(t, plan+"/"+name, filepath.Join(c.folder, one, name))
		}
	}
}

// Workers that share a bucket only, are killed at any point and lose their disks, continue: the result is that of one
// process. Their data files are copied in the bucket. Of two processes that finalize at the same time, the one that was
// started last does.
func TestPlanInBucket(t *testing.T) {
	c := newCluster(t, "transformer.onnx")
	c.put(t, "s3://models/recipe.yaml", "steps:\n  - method: weight-int4\n")
	a, b := t.TempDir(), t.TempDir()
	c.runs(t, 0, a, "plan -n 3 -o s3://models/out -- apply --no-sync s3://models/recipe.yaml s3://models/in/transformer.onnx")
	c.runs(t, exitUsage, a, "plan -n 3 -o s3://models/out s3://models/in/transformer.onnx s3://models/recipe.yaml")
	empty(t, a)
	if stderr := c.runs(t, exitIO, t.TempDir(), "finalize s3://models/out"); !strings.Contains(stderr,
		"3 of 3 workers have not ended") {
		t.Error(stderr)
	}

	work := "work s3://models/out --index "
	c.signalled(t, syscall.SIGKILL, a, work+"0", http.MethodPut, "parts/00000/file.")
	c.signalled(t, syscall.SIGTERM, b, work+"0", http.MethodPost, "uploads=")
	if logs, err := os.ReadDir(filepath.Join(c.folder, "out", "parts", "00000", "journal")); err != nil ||
		len(logs) != 1 {
		t.Errorf("an interrupted worker has sent %d parts of its log: %v", len(logs), err)
	}
	c.signalled(t, syscall.SIGKILL, t.TempDir(), work+"0", http.MethodPut, "parts/00000/journal/")
	c.runs(t, 0, a, work+"0")
	c.runs(t, 0, a, work+"0")
	empty(t, a)
	c.answer(func(w http.ResponseWriter, r *http.Request) bool {
		expired := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "journal")
		if expired {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, "<Error><Code>ExpiredToken</Code></Error>")
		}
		return expired
	})
	if stderr := c.runs(t, exitIO, b, work+"1"); !strings.Contains(stderr, "expired") {
		t.Error(stderr)
	}
	c.answer(nil)
	for _, index := range []string{"1", "2"} {
		c.runs(t, 0, b, work+index)
	}

	finalize := "finalize -q s3://models/out"
	c.signalled(t, syscall.SIGKILL, a, finalize, http.MethodPut, "transformer.recipe.onnx.data-00002-of-00003")
	c.concurrent(t, a, b, finalize)
	c.signalled(t, syscall.SIGKILL, b, finalize, http.MethodDelete, "parts/")
	c.runs(t, 0, b, finalize)
	c.runs(t, 0, a, work+"1")
	c.runs(t, 0, t.TempDir(), "apply --no-sync s3://models/recipe.yaml s3://models/in/transformer.onnx --data-files 3 -o s3://models/one/ -q")
	c.sameResults(t, "out", "one")
}

// concurrent finalizes a plan on two machines, of which the second one begins while the first one does: the first one
// ends with an error, the second one is killed before it has recorded the end.
func (c *cluster) concurrent(t *testing.T, a, b, finalize string) {
	t.Helper()
	first, stderr := c.command(a, finalize)
	second, _ := c.command(b, finalize)
	var checks, copies atomic.Int64
	started := make(chan struct{})
	c.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "transformer.recipe.onnx") &&
			strings.HasPrefix(r.URL.RawQuery, "uploads"):
			if checks.Add(1) == 1 { // the first process has locked the plan, and checks whether it can write
				if err := second.Start(); err != nil {
					t.Error(err)
				}
				<-started
			} else if checks.Load() == 2 {
				close(started)
			}
		case r.Header.Get("X-Amz-Copy-Source") != "":
			copies.Add(1)
		case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, resultFile):
			_ = second.Process.Kill()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	defer c.answer(nil)
	if err := first.Run(); first.ProcessState.ExitCode() != exitIO ||
		!strings.Contains(stderr.String(), "has taken it over") {
		t.Errorf("the first process ends with %v: %s", err, stderr)
	}
	if err := second.Wait(); err == nil || copies.Load() != 3 {
		t.Errorf("%d data files are copied, and the second process ends with %v", copies.Load(), err)
	}
}

// Workers that share a bucket only exchange the measurements of a search.
func TestSearchInBucket(t *testing.T) {
	c := newCluster(t, "mlp.onnx", "digits_test.npz")
	search := "quantize --no-sync --auto --min-sqnr 30 --data s3://models/in/digits_test.npz --limit 8 --candidates weight-int8,float16 s3://models/in/mlp.onnx"
	c.runs(t, 0, t.TempDir(), "plan -n 2 -o s3://models/out -- "+search)
	first, stderr := c.command(t.TempDir(), "work s3://models/out --index 0")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if printed := c.runs(t, 0, t.TempDir(), "work s3://models/out --index 1"); !strings.Contains(printed,
		"worker 1 waits for") {
		t.Error(printed)
	}
	if err := first.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	machine := t.TempDir()
	c.runs(t, 0, machine, "finalize -q s3://models/out")
	empty(t, machine)
	c.runs(t, 0, t.TempDir(), search+" --data-files 2 -o s3://models/one/ -q")
	c.sameResults(t, "out", "one")
}

// The folder of a plan may be on disk and the model in a bucket, with external data. A model that is replaced is
// another source, and URLs with signatures are not stored.
func TestPlanOfURL(t *testing.T) {
	b := startBucket(t, "external.onnx", "external_a.bin", "external_b.bin")
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	exitsWith(t, 0, "plan", "-n", "2", "-o", out, "--", "prune", "--method", "l1", "s3://models/in/external.onnx")
	exitsWith(t, 0, "work", out, "--index", "1")
	exitsWith(t, 0, "work", out, "--index", "0")
	exitsWith(t, 0, "finalize", out)
	exitsWith(t, 0, "prune", "--method", "l1", "s3://models/in/external.onnx", "--data-files", "2",
		"-o", filepath.Join(dir, "one")+"/")
	for _, name := range []string{"external.l1.onnx", "external.l1.onnx.data-00002-of-00002",
		"external.l1.report.json"} {
		sameFile(t, filepath.Join(dir, "one"), out, name)
	}
	stale := filepath.Join(dir, "stale")
	exitsWith(t, 0, "plan", "-n", "2", "-o", stale, "--", "prune", "--method", "l1", "s3://models/in/external.onnx")
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(data, make([]byte, len(fileContent(t, filepath.Join(b.folder, "in", "external_b.bin")))),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := remote.Publish(t.Context(), []remote.Upload{{Path: data,
		URL: "s3://models/in/external_b.bin"}}); err != nil {
		t.Fatal(err)
	}
	if _, stderr := exitsWith(t, exitUsage, "work", stale, "--index", "0"); !strings.Contains(stderr,
		"was made for another source") {
		t.Error(stderr)
	}
	stdout, _ := exitsWith(t, 0, "plan", "-n", "2", "-o", "s3://models/emitted", "--emit", "kubernetes",
		"--", "quantize", "s3://models/in/external.onnx")
	if !strings.Contains(stdout, "s3://models/emitted") || !strings.Contains(stdout, "sizeLimit: 65Mi") {
		t.Errorf("the manifest is %s", stdout)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join("..", "..", "fixtures"))))
	defer server.Close()
	for text, args := range map[string][]string{
		"stores no URLs with a query": {"plan", "-n", "2", "-o", stale + "2", "--", "quantize",
			"https://host/m.onnx?signature=secret"},
		"sends no strong ETag": {"plan", "-n", "2", "-o", stale + "3", "--", "quantize", server.URL + "/mlp.onnx"},
		"results are written to": {"plan", "-n", "2", "-o", "https://host/plan", "--", "quantize",
			"s3://models/in/external.onnx"},
		"no plan": {"work", "s3://models/none", "--index", "0"},
	} {
		if _, stderr := exitsWith(t, exitUsage, args...); !strings.Contains(stderr, text) ||
			strings.Contains(stderr, "secret") {
			t.Errorf("%s: %s", args, stderr)
		}
	}
}
