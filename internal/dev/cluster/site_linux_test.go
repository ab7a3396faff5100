package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/onnx"
)

// A cluster is a control plane with a node.
type cluster struct {
	*controlPlane
	*node
	results results
}

// A site is where a case runs: a namespace with a claim, models, which containers have at /data.
type site struct {
	*cluster
	namespace, folder string
}

// site makes the namespace of a case, whose claim is a folder.
func (c *cluster) site(t *testing.T, namespace, folder string) *site {
	t.Helper()
	s := &site{c, namespace, folder}
	body := object{"metadata": object{"name": namespace}}
	if err := c.controlPlane.object(t.Context(), http.MethodPost, "/api/v1/namespaces", asJSON, body); err != nil {
		t.Fatal(err)
	}
	c.claim(namespace, "models", s.folder)
	return s
}

// dataFolder is an empty folder of the user of the image.
func dataFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chown(folder, imageUser, imageUser); err != nil {
		t.Fatal(err)
	}
	return folder
}

// mcompress runs the program as a container of its own, outside of the cluster, with a folder at /data, and returns
// what it has used and printed on stdout.
func mcompress(t *testing.T, image, folder string, args ...string) (usage, string) {
	t.Helper()
	dir := t.TempDir()
	p := process{
		Image: image, Base: filepath.Join(dir, "root"), User: imageUser, Group: imageUser, Dir: "/data",
		Env:    []string{"HOME=/tmp"},
		Mounts: []mount{{Source: folder, Target: "/data"}, {Kind: "tmpfs", Target: "/tmp", Options: "mode=1777"}},
		Args:   append([]string{"/usr/bin/mcompress"}, args...),
	}
	if err := os.Mkdir(p.Base, 0o755); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	_, result, err := p.start(&stdout, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	u := <-result
	if u.Code != 0 {
		t.Logf("%q ends with exit code %d: %s", args, u.Code, &stderr)
	}
	return u, stdout.String()
}

// succeeds is mcompress with exit code 0.
func succeeds(t *testing.T, image, folder string, args ...string) (usage, string) {
	t.Helper()
	u, text := mcompress(t, image, folder, args...)
	if u.Code != 0 {
		t.FailNow()
	}
	return u, text
}

// A manifest is the text of a Job.
type manifest string

// jobName matches the name of a manifest, the first of its metadata.
var jobName = regexp.MustCompile(`(?m)^  name: (.*)$`)

func (m manifest) name() string { return jobName.FindStringSubmatch(string(m))[1] }

// manifests splits a text into its documents.
func manifests(text string) (all []manifest) {
	for _, document := range strings.Split(text, "\n---\n") {
		all = append(all, manifest(document))
	}
	return all
}

// listManifest is the Job of a list in the guide.
func listManifest(t *testing.T) manifest {
	return manifest(guideBlock(t, "yaml", "apiVersion: batch/v1\n"))
}

// guideBlock is the code block of a language in docs/guide/scale.md with a beginning.
func guideBlock(t *testing.T, language, beginning string) string {
	t.Helper()
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "guide", "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```"+language+"\n"+beginning)
	if !found {
		t.Fatalf("no block of %s in docs/guide/scale.md begins with %q", language, beginning)
	}
	block, _, _ = strings.Cut(block, "```")
	return beginning + block
}

// replaced is the manifest with another text, which it has once.
func (m manifest) replaced(t *testing.T, from, to string) manifest {
	t.Helper()
	if strings.Count(string(m), from) != 1 {
		t.Fatalf("%q is not once in the manifest:\n%s", from, m)
	}
	return manifest(strings.Replace(string(m), from, to, 1))
}

// strict is the query of a request that changes nothing and reports unknown and repeated fields.
const strict = "?dryRun=All&fieldValidation=Strict"

// create creates a Job, after a strict dry run.
func (s *site) create(t *testing.T, m manifest) {
	t.Helper()
	for _, query := range []string{strict, ""} {
		if err := s.controlPlane.send(t.Context(), http.MethodPost, namespaced(s.namespace, "jobs")+query, asYAML,
			[]byte(m), nil); err != nil {
			t.Fatalf("%v\n%s", err, m)
		}
	}
}

// status is the state of a Job.
func (s *site) status(ctx context.Context, name string) (j job, err error) {
	return j, s.controlPlane.send(ctx, http.MethodGet, namespaced(s.namespace, "jobs", name), asJSON, nil, &j)
}

// finish waits until a Job has a condition that ends it, and returns its state.
func (s *site) finish(t *testing.T, name string, limit time.Duration) job {
	t.Helper()
	var j job
	wait(t, "job "+name, limit, func() bool {
		var err error
		if j, err = s.status(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return j.has("Complete") || j.has("Failed")
	})
	return j
}

// complete waits until a Job is complete.
func (s *site) complete(t *testing.T, name string, limit time.Duration) {
	t.Helper()
	if j := s.finish(t, name, limit); !j.has("Complete") {
		t.Errorf("job %s: %+v", name, j.Status)
		for _, e := range s.containers(name) {
			t.Logf("%s, exit code %d:\n%s", e.pod.Metadata.Name, e.Code, tail(e.output))
		}
	}
}

// containers are the ended containers of a Job, in the order of their ends.
func (s *site) containers(name string) (all []ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.node.ended {
		if e.pod.Metadata.Namespace == s.namespace && e.pod.Metadata.Labels["batch.kubernetes.io/job-name"] == name {
			all = append(all, e)
		}
	}
	return all
}

// idle reports whether no container of the site runs.
func (s *site) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.node.pods {
		if r.Metadata.Namespace == s.namespace && r.process != nil {
			return false
		}
	}
	return true
}

// A line is an event of mcompress --json.
type line struct {
	Event, Model, Result, Error string
}

// lines are the JSON lines in the output of a container. The last one of a killed process may be incomplete.
func (e ended) lines(t *testing.T) (all []line) {
	t.Helper()
	f, err := os.Open(e.output)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var l line
		if json.Unmarshal(s.Bytes(), &l) == nil {
			all = append(all, l)
		}
	}
	return all
}

// largest is the number of bytes up to which real models are in a list.
const largest = 3 << 20

// makeModels writes models into the folder models of a folder, and a list of them, list.txt, with paths relative to it.
// They are copies of the fixtures and of real models with graphs of different names, in one file, with external data,
// or packed.
func makeModels(t *testing.T, image, folder string, n int) {
	t.Helper()
	sources := conform.Fixtures(t)
	for _, path := range conform.RealModels(t) {
		if st, err := os.Stat(path); err == nil && st.Size() <= largest {
			sources = append(sources, path)
		}
	}
	models := filepath.Join(folder, "models")
	if err := cmp.Or(os.Mkdir(models, 0o755), os.Chown(models, imageUser, imageUser)); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for i := range n {
		name := fmt.Sprintf("%03d.onnx", i)
		if err := copyModel(t.Context(), sources[i%len(sources)], filepath.Join(models, name),
			fmt.Sprintf("graph %d", i), i%4 == 1); err != nil {
			t.Fatal(err)
		}
		if i%8 == 7 {
			packed := strings.TrimSuffix(name, ".onnx") + ".mcz"
			succeeds(t, image, models, "pack", "--no-sync", "-o", "/data/"+packed, "/data/"+name)
			if err := os.Remove(filepath.Join(models, name)); err != nil {
				t.Fatal(err)
			}
			name = packed
		}
		fmt.Fprintf(&list, "models/%s\n", name)
	}
	if err := os.WriteFile(filepath.Join(folder, "list.txt"), []byte(list.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// copyModel writes a model with another name of its graph.
func copyModel(ctx context.Context, from, to, graph string, external bool) (err error) {
	f, err := onnx.OpenContext(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	f.Model.Graph.Name = graph
	_, err = onnx.Save(ctx, f.Model, to, onnx.SaveOptions{External: external})
	return err
}

// own matches files whose content is that of a run: the documents of its environment, which HTML reports include.
var own = regexp.MustCompile(`\.(environment\.json|report\.html)$`)

// sameFiles checks that two folders have the same files, but for extra ones.
func sameFiles(t *testing.T, got, want string, extra ...string) {
	t.Helper()
	names := func(folder string) (all []string) {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !slices.Contains(extra, d.Name()) {
				all = append(all, strings.TrimPrefix(path, folder))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	a, b := names(got), names(want)
	if !slices.Equal(a, b) {
		t.Errorf("%d files, want %d; not in both: %q", len(a), len(b),
			slices.DeleteFunc(append(a, b...), func(name string) bool {
				return slices.Contains(a, name) &&
					slices.Contains(b, name)
			}))
		return
	}
	for _, name := range b {
		if own.MatchString(name) {
			continue
		}
		if same, err := sameContent(filepath.Join(got, name), filepath.Join(want, name)); err != nil || !same {
			t.Errorf("%s, and perhaps others, differ from those of one process: %v", name, err)
			return
		}
	}
}

// sameContent compares two files block by block: the memory of this process counts for that of its children.
func sameContent(a, b string) (bool, error) {
	var files [2]*os.File
	for i, path := range []string{a, b} {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		defer f.Close()
		files[i] = f
	}
	var blocks [2][64 << 10]byte
	for {
		m, errA := io.ReadFull(files[0], blocks[0][:])
		n, errB := io.ReadFull(files[1], blocks[1][:])
		if !bytes.Equal(blocks[0][:m], blocks[1][:n]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			ended := func(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
			return ended(errA) && ended(errB), nil
		}
	}
}
