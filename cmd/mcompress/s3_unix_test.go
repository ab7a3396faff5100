//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/remote"
)

// A bucket is one of an S3 server, with an empty folder of caches.
type bucket struct {
	folder string
	before func(w http.ResponseWriter, r *http.Request) bool // returns true if it has answered; nil for none
	mu     sync.Mutex
}

// startBucket starts an S3 server, whose only bucket is s3://models, and uploads fixtures.
func startBucket(t *testing.T, fixtures ...string) *bucket {
	t.Helper()
	endpoint, folder := conform.S3(t, "models")
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	b := &bucket{folder: folder}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // which is signed
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		before := b.before
		b.mu.Unlock()
		if before == nil || !before(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": conform.S3AccessKey,
		"AWS_SECRET_ACCESS_KEY": conform.S3SecretKey,
		"AWS_SESSION_TOKEN":     "", "AWS_ENDPOINT_URL_S3": "", "XDG_CACHE_HOME": t.TempDir(), "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	var files []remote.Upload
	for _, name := range fixtures {
		files = append(files, remote.Upload{Path: filepath.Join("..", "..", "fixtures", name),
			URL: "s3://models/in/" + name})
	}
	if err := remote.Publish(context.Background(), files); err != nil {
		t.Fatal(err)
	}
	return b
}

// answer sets what answers requests before the server; nil for nothing.
func (b *bucket) answer(before func(http.ResponseWriter, *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = before
}

// same checks that the object has the content of a file.
func (b *bucket) same(t *testing.T, key, path string) {
	t.Helper()
	if got, want := fileContent(t, filepath.Join(b.folder, key)), fileContent(t, path); !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, %s has %d", key, len(got), path, len(want))
	}
}

// Results in a bucket are those of files on disk: models with and without external data, with samples, a recipe and a
// teacher in the bucket.
func TestBucket(t *testing.T) {
	b := startBucket(t, "mlp.onnx", "external.onnx", "external_a.bin", "external_b.bin", "cnn.onnx", "digits_test.npz")
	fixtures, dir := filepath.Join("..", "..", "fixtures"), t.TempDir()
	exitsWith(t, 0, "quantize", "s3://models/in/mlp.onnx", "-o", "s3://models/out/one.onnx")
	exitsWith(t, 0, "quantize", filepath.Join(fixtures, "mlp.onnx"), "-o", filepath.Join(dir, "one.onnx"))
	b.same(t, "out/one.onnx", filepath.Join(dir, "one.onnx"))
	b.same(t, "out/one.report.json", filepath.Join(dir, "one.report.json"))

	exitsWith(t, 0, "prune", "--method", "l1", "s3://models/in/external.onnx", "s3://models/in/mlp.onnx",
		"-o", "s3://models/many/", "--report", "none")
	exitsWith(t, 0, "prune", "--method", "l1", filepath.Join(fixtures, "external.onnx"), "-o", dir, "--report", "none")
	b.same(t, "many/external.l1.onnx", filepath.Join(dir, "external.l1.onnx"))
	b.same(t, "many/external.l1.onnx.data", filepath.Join(dir, "external.l1.onnx.data"))

	for to, from := range map[string]string{"a.onnx": "s3://models/in/", "b.onnx": fixtures + "/"} {
		exitsWith(t, 0, "quantize", "--method", "static-int8", from+"cnn.onnx", "--data", from+"digits_test.npz",
			"-o", filepath.Join(dir, to), "--report", "none", "--strip-metadata")
	}
	stdout, _ := exitsWith(t, 0, "inspect", "s3://models/in/external.onnx")
	if !strings.Contains(stdout, "s3://models/in/external.onnx") || !strings.Contains(stdout, "external_b.bin") {
		t.Errorf("inspect prints %s", stdout)
	}
	exitsWith(t, 0, "verify", "s3://models/in/mlp.onnx", "s3://models/out/one.onnx",
		"--data", "s3://models/in/digits_test.npz")
	if entries, err := os.ReadDir(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "mcompress", "results")); err != nil ||
		len(entries) > 0 {
		t.Errorf("%v are left in the cache: %v", entries, err)
	}

	for _, args := range [][]string{
		{"quantize", "s3://models/in/mlp.onnx"},
		{"quantize", "s3://models/in/mlp.onnx", "-o", "https://host/x.onnx"},
		{"quantize", "s3://models/in/mlp.onnx", "-o", "gs://models/x.onnx"},
		{"quantize", "s3://models", "-o", "s3://models/x.onnx"},
		{"quantize", "s3://models/in/mlp.onnx", "-o", "s3://models/in/mlp.onnx"},
		{"quantize", "s3://models/in/mlp.onnx", "-o", "s3://models/x.onnx", "--report-dir", "s3://models/reports"},
		{"push", "s3://models/in/mlp.onnx", "dir:" + dir},
	} {
		exitsWith(t, exitUsage, args...)
	}
	exitsWith(t, exitIO, "inspect", "s3://models/in/none.onnx")
	exitsWith(t, exitIO, "quantize", filepath.Join(fixtures, "mlp.onnx"), "-o", "s3://none/x.onnx")
}

// A list may have URLs, and be at one; --if-changed skips results by their digests, without reading models and results.
func TestListInBucket(t *testing.T) {
	b := startBucket(t, "mlp.onnx", "gemm.onnx")
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("s3://models/in/mlp.onnx\ns3://models/in/gemm.onnx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := remote.Publish(t.Context(), []remote.Upload{{Path: list, URL: "s3://models/list"}}); err != nil {
		t.Fatal(err)
	}
	quantize := []string{"quantize", "--files-from", "s3://models/list", "-o", "s3://models/out", "--if-changed"}
	stdout, _ := exitsWith(t, 0, quantize...)
	if !strings.Contains(stdout, "2 models: 2 written") {
		t.Fatalf("the first run prints %s", stdout)
	}
	first := fileContent(t, filepath.Join(b.folder, "out", "models", "in", "mlp.dynamic-int8.onnx"))
	var read atomic.Int64
	b.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		var start, end int64
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &start, &end); err == nil && end-start >= 64<<10 {
			read.Add(1)
		}
		return false
	})
	stdout, _ = exitsWith(t, 0, quantize...)
	if !strings.Contains(stdout, "2 models: 2 up-to-date") {
		t.Errorf("the second run prints %s", stdout)
	}
	if n := read.Load(); n > 0 {
		t.Errorf("%d requests of payloads", n)
	}
	b.answer(nil)
	// A source that was replaced.
	if err := remote.Publish(t.Context(), []remote.Upload{{Path: filepath.Join("..", "..", "fixtures", "mlp.onnx"),
		URL: "s3://models/in/gemm.onnx"}}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := exitsWith(t, 0, quantize...)
	if !strings.Contains(stdout, "2 models: 1 written, 1 up-to-date") ||
		!strings.Contains(stderr, "gemm.onnx: not up to date: the source changed") {
		t.Errorf("the run after a replaced source prints %s%s", stdout, stderr)
	}
	if err := remote.Publish(t.Context(), []remote.Upload{{Path: list,
		URL: "s3://models/out/models/in/mlp.dynamic-int8.onnx"}}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr = exitsWith(t, 0, quantize...)
	if !strings.Contains(stdout, "2 models: 1 written, 1 up-to-date") ||
		!strings.Contains(stderr, "mlp.dynamic-int8.onnx is not that of the report") {
		t.Errorf("the third run prints %s%s", stdout, stderr)
	}
	if got := fileContent(t, filepath.Join(b.folder, "out", "models", "in",
		"mlp.dynamic-int8.onnx")); !bytes.Equal(got, first) {
		t.Error("the result differs from that of the first run")
	}
	_, stderr = exitsWith(t, 0, "quantize", "--files-from", list, "-o", filepath.Join(t.TempDir(), "out"),
		"--shard", "0/2")
	if !strings.Contains(stderr, "shard 0/2: 1 of 2 models") {
		t.Errorf("the run of a shard prints %s", stderr)
	}
}

// The index of a list in a bucket is there after its run, and after the last step of several workers.
func TestIndexInBucket(t *testing.T) {
	b := startBucket(t, "mlp.onnx", "gemm.onnx")
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("s3://models/in/mlp.onnx\ns3://models/in/none.onnx\ns3://models/in/gemm.onnx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quantize := []string{"quantize", "--files-from", list, "--no-verify", "-o"}
	exitsWith(t, exitIO, append(quantize, "s3://models/whole")...)
	log := filepath.Join(t.TempDir(), "log")
	for _, shard := range []string{"0/2", "1/2"} {
		var out, errors bytes.Buffer
		run(t.Context(), append(append([]string{"mcompress", "--json"}, quantize...), "s3://models/parts/",
			"--shard", shard), &out, &errors)
		if err := os.WriteFile(log+shard[:1], out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.folder, "parts", "index.json")); err == nil {
		t.Error("a shard has written an index")
	}
	stdout, _ := exitsWith(t, exitIO, "report", "s3://models/parts/", "--files-from", list, "--log", log+"?")
	if !strings.Contains(stdout, "3 models: 2 written, 1 failed") {
		t.Errorf("report prints %s", stdout)
	}
	for _, name := range []string{"index.json", "index.html"} {
		b.same(t, "parts/"+name, filepath.Join(b.folder, "whole", name))
	}
	if page := string(fileContent(t, filepath.Join(b.folder, "parts", "index.html"))); !strings.Contains(page,
		`<a href="models/in/mlp.dynamic-int8.report.html">s3://models/in/mlp.onnx</a>`) {
		t.Error("the page has no link")
	}
	stdout, _ = exitsWith(t, 0, "report", "s3://models/parts", "--format", "html")
	if !strings.Contains(stdout, `href="models/in/gemm.dynamic-int8.report.html"`) {
		t.Error("the page on standard output has no link")
	}
	exitsWith(t, exitInput, "report", "s3://models/none/")
	exitsWith(t, exitIO, "report", "s3://none/x/")
}

// A run that is killed while it uploads leaves no object; with --if-changed the next run uploads the same result, and
// no upload is left.
func TestKilledUpload(t *testing.T) {
	b := startBucket(t, "mlp.onnx")
	dir := programFolder(t)
	args := []string{"quantize", "s3://models/in/mlp.onnx", "-o", "s3://models/out/m.onnx",
		"--if-changed", "--no-verify"}
	c := exec.Command(filepath.Join(dir, "mcompress"), args...)
	b.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "m.onnx") {
			_ = c.Process.Kill()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	if err := c.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	b.answer(nil)
	if entries, err := os.ReadDir(filepath.Join(b.folder, "out")); err == nil && len(entries) > 0 {
		t.Errorf("%v have appeared", entries)
	}
	results, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "mcompress", "results", "*"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%v, %v are kept", results, err)
	}
	// as if it was killed while it removed its temporary folder
	writing := filepath.Join(results[0], ".mcompress-1.part")
	if err := errors.Join(os.Mkdir(writing, 0o700),
		os.WriteFile(filepath.Join(writing, "mcompress.lock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	stdout, _ := exitsWith(t, 0, args...)
	if !strings.Contains(stdout, "s3://models/out/m.onnx") {
		t.Errorf("the next run prints %s", stdout)
	}
	local := filepath.Join(t.TempDir(), "m.onnx")
	exitsWith(t, 0, "quantize", filepath.Join("..", "..", "fixtures", "mlp.onnx"), "-o", local, "--no-verify")
	b.same(t, "out/m.onnx", local)
	if entries, err := os.ReadDir(filepath.Join(b.folder, "out")); err != nil ||
		slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		t.Errorf("%v, %v are uploaded", entries, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(results[0])); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v are left on disk", entries, err)
	}
	parts, err := filepath.Glob(filepath.Join(b.folder, ".sgwtmp", "multipart", "*", "*"))
	if err != nil || len(parts) > 0 {
		t.Errorf("%v are left of uploads: %v", parts, err)
	}
}

// The shards of a list are processes that are killed at random and run again until they succeed: each result is in the
// bucket, that of one process, and no model is reported as written twice. The list has half of the fixtures, or all by
// make test-exhaustive.
func TestKilledShardsInBucket(t *testing.T) {
	const shards, seed = 3, 1
	var names []string
	var list strings.Builder
	for _, path := range conform.Part(0, 2, conform.Fixtures(t)) {
		if name := filepath.Base(path); name != "external.onnx" { // whose data are other objects
			names = append(names, name)
			fmt.Fprintln(&list, "s3://models/in/"+name)
		}
	}
	b := startBucket(t, names...)
	dir := programFolder(t)
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	exitsWith(t, 0, "quantize", "--files-from", filepath.Join(dir, "list"), "-o", "s3://models/one/",
		"--if-changed", "-q")

	var g errgroup.Group
	var all [shards]killedShard
	for k := range shards {
		g.Go(func() error {
			args := []string{"--json", "quantize", "--files-from", "list", "-o", "s3://models/out/",
				"--if-changed", "--shard", fmt.Sprintf("%d/%d", k, shards)}
			return all[k].run(dir, args, rand.New(rand.NewPCG(seed, uint64(k))))
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var written []string
	killed := 0
	for _, s := range all {
		written, killed = append(written, s.written...), killed+s.killed
	}
	t.Logf("%d processes were killed, by seed %d", killed, seed)
	if killed == 0 || len(written)+killed < len(names) {
		t.Errorf("%d of %d models were written, %d processes killed", len(written), len(names), killed)
	}
	slices.Sort(written)
	if once := slices.Compact(slices.Clone(written)); len(once) < len(written) {
		t.Errorf("models were written twice: %q", written)
	}
	exitsWith(t, 0, "report", "s3://models/out", "--files-from", filepath.Join(dir, "list"))
	one, out := objects(t, b, "one"), objects(t, b, "out")
	if !slices.Equal(out, one) {
		t.Errorf("objects\n%q, of one process\n%q", out, one)
	}
	for _, key := range one {
		if strings.HasSuffix(key, ".onnx") || strings.HasSuffix(key, ".report.json") || key == "/index.json" {
			b.same(t, filepath.Join("out", key), filepath.Join(b.folder, "one", key))
		}
	}
}

// A killedShard is what the processes of a shard have done.
type killedShard struct {
	written []string // models
	killed  int
}

// run runs the program in a folder, and kills it after random delays, until it ends without being killed, which it may
// after some kills.
func (s *killedShard) run(dir string, args []string, rng *rand.Rand) error {
	const kills = 4
	for {
		c := exec.Command(filepath.Join(dir, "mcompress"), args...)
		var stdout bytes.Buffer
		c.Dir, c.Stdout = dir, &stdout
		if err := c.Start(); err != nil {
			return err
		}
		var timer *time.Timer
		if s.killed < kills {
			timer = time.AfterFunc(time.Duration(rng.IntN(500))*time.Millisecond, func() { _ = c.Process.Kill() })
		}
		err := c.Wait()
		if timer != nil {
			timer.Stop()
		}
		for line := range strings.Lines(stdout.String()) {
			var event struct{ Model, Result string }
			if json.Unmarshal([]byte(line), &event) == nil && event.Result == "written" {
				s.written = append(s.written, event.Model)
			}
		}
		if err == nil || c.ProcessState.ExitCode() >= 0 {
			return err
		}
		s.killed++
	}
}

// objects are the keys below a prefix, without it.
func objects(t *testing.T, b *bucket, prefix string) (keys []string) {
	t.Helper()
	root := filepath.Join(b.folder, prefix)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			keys = append(keys, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil || len(keys) == 0 {
		t.Fatalf("%d objects below %s: %v", len(keys), prefix, err)
	}
	return keys
}
