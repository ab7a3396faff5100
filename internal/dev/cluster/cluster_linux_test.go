package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// TestKubernetes runs lists and plans on a Kubernetes cluster.
func TestKubernetes(t *testing.T) {
	requested(t)
	plane := startControlPlane(t)
	c := &cluster{controlPlane: plane, node: startNode(t, &plane.api, buildImage(t), 16)}
	t.Cleanup(func() { fmt.Printf("\n%v\n", c.results) })
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"strict", testStrict},
		{"list", testList},
		{"full", testFullDisk},
		{"manager", testManager},
		{"finalizers", testFinalizers},
		{"large", testLarge},
		{"sensitivity", testSensitivity},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// requested skips tests that make test-cluster has not requested.
func requested(t *testing.T) {
	t.Helper()
	if os.Getenv("MCOMPRESS_CLUSTER") == "" {
		t.Skip("make test-cluster runs it")
	}
}

// The API server accepts the manifest of the guide and refuses one with a misspelled field.
func testStrict(t *testing.T, c *cluster) {
	s := c.site(t, "strict", t.TempDir())
	s.create(t, listManifest(t).replaced(t, "  parallelism: 16", "  parallelism: 0"))
	misspelled := listManifest(t).replaced(t, "backoffLimitPerIndex", "backoffLimitByIndex")
	err := s.controlPlane.send(t.Context(), http.MethodPost, namespaced(s.namespace, "jobs")+strict, asYAML,
		[]byte(misspelled), nil)
	if e := (*statusError)(nil); !errors.As(err, &e) || e.code != http.StatusBadRequest ||
		!strings.Contains(e.text, `unknown field \"spec.backoffLimitByIndex\"`) {
		t.Errorf("a misspelled field: %v", err)
	}
}

// seed is that of the kills.
const seed = 1

// A list of 200 models, one of them malformed, whose workers are killed at random: nothing is lost, nothing is done
// twice but by the killed workers, and the files are those of one process. The index of the malformed model fails once
// and is not retried; the others are complete.
func testList(t *testing.T, c *cluster) {
	const models = 200
	s := c.site(t, "list", dataFolder(t))
	makeModels(t, c.image, s.folder, models-1)
	malformed := "models/malformed.onnx"
	addMalformed(t, s.folder, malformed)
	one, reference := compressed(t, c.image, s.folder, 4)

	m := listManifest(t)
	began := time.Now()
	s.create(t, m)
	early := s.killAtRandom(t, m.name(), 24)
	j := s.finish(t, m.name(), 10*time.Minute)
	all := s.containers(m.name())
	c.results = append(c.results, result{"list of 200 models, 16 indexes", early, time.Since(began).Seconds(), one,
		all, nil})

	written := map[string]int{}
	codes := map[string][]int{} // of the containers of each index, in the order of their ends
	failed := ""                // index of the malformed model
	for _, e := range all {
		codes[e.pod.index()] = append(codes[e.pod.index()], e.Code)
		for _, l := range e.lines(t) {
			switch {
			case l.Model == malformed:
				failed = e.pod.index()
			case l.Result == "written":
				written[l.Model]++
			case l.Event == "model" && l.Result != "up-to-date":
				t.Errorf("%s: %+v", e.pod.Metadata.Name, l)
			}
		}
	}
	for name, n := range written {
		if n > 1 {
			t.Errorf("%s was written %d times", name, n)
		}
	}
	// A result whose process was killed before it printed the line of it is up to date for the next one.
	if n := len(written) + early; n < models-1 {
		t.Errorf("%d models were written, and %d processes ended early", len(written), early)
	}
	sameFiles(t, filepath.Join(s.folder, "compressed"), filepath.Join(reference, "compressed"), indexFiles...)
	if u, text := mcompress(t, c.image, s.folder, "report", "compressed", "--files-from", "list.txt"); u.Code != 1 ||
		!strings.Contains(text, "200 models: 199 written, 1 missing") {
		t.Errorf("the index of the results ends with exit code %d: %s", u.Code, text)
	}

	if !j.has("Failed") || j.Status.FailedIndexes != failed || j.Status.Succeeded != len(codes)-1 {
		t.Errorf("index %s is that of the malformed model: %+v", failed, j.Status)
	}
	for index, codes := range codes {
		last := len(codes) - 1
		if malformed := slices.Index(codes, 4); index == failed && malformed != last || index != failed &&
			(malformed >= 0 || codes[last] != 0) {
			t.Errorf("exit codes of index %s: %d", index, codes)
		}
	}
}

// indexFiles are the names of the index that a run of a whole list writes, and mcompress report after those of its
// shards.
var indexFiles = []string{"index.html", "index.json"}

// compressed is what one process uses for the list of a folder, and a copy of the folder with its results.
func compressed(t *testing.T, image, folder string, code int) (usage, string) {
	t.Helper()
	reference := dataFolder(t)
	if err := os.CopyFS(reference, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	u, _ := mcompress(t, image, reference, "quantize", "--files-from", "/data/list.txt", "-o", "/data/compressed/",
		"--if-changed", "-q")
	if u.Code != code {
		t.Fatalf("one process ends with exit code %d", u.Code)
	}
	return u, reference
}

// addMalformed adds a model to the list that is not valid.
func addMalformed(t *testing.T, folder, path string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(conform.Shared(t), "hostile", "cycle_transpose.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, path), content, 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := os.OpenFile(filepath.Join(folder, "list.txt"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	if _, err := fmt.Fprintln(list, path); err != nil {
		t.Fatal(err)
	}
}

// killAtRandom kills containers of a Job, or evicts their pods, which sends SIGTERM, until it has done so n times or
// the Job has ended; it returns how often. An index is killed once, as its retries are delayed and counted, which those
// after an eviction are not.
func (s *site) killAtRandom(t *testing.T, name string, n int) (early int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("kills of seed %d", seed)
	once := map[string]bool{}
	for early < n {
		time.Sleep(time.Duration(50+rng.IntN(400)) * time.Millisecond)
		evict := rng.IntN(2) == 0
		index, err := s.node.kill(t.Context(), s.namespace, rng, evict,
			func(index string) bool { return !evict && once[index] })
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case index == "":
			j, err := s.status(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if j.has("Complete") || j.has("Failed") {
				return early
			}
		default:
			early++
			once[index] = once[index] || !evict
		}
	}
	return early
}
