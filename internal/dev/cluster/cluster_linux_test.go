package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// TestKubernetes runs lists and plans on a Kubernetes cluster.
func TestKubernetes(t *testing.T) {
	requested(t)
	plane := startControlPlane(t)
	c := &cluster{plane, startNode(t, &plane.api, buildImage(t), 16)}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"strict", testStrict},
		{"list", testList},
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
	s := c.site(t, "strict")
	s.create(t, listManifest(t).replaced(t, "  parallelism: 16", "  parallelism: 0"))
	misspelled := listManifest(t).replaced(t, "backoffLimitPerIndex", "backoffLimitByIndex")
	err := s.controlPlane.send(t.Context(), http.MethodPost, namespaced(s.namespace, "jobs")+strict, asYAML, []byte(misspelled), nil)
	if e := (*statusError)(nil); !errors.As(err, &e) || e.code != http.StatusBadRequest || !strings.Contains(e.text, `unknown field \"spec.backoffLimitByIndex\"`) {
		t.Errorf("a misspelled field: %v", err)
	}
}

// seed is that of the kills.
const seed = 1

// A list of 200 models, one of them malformed, whose workers are killed at random: nothing is lost, nothing is done twice but by the killed workers, the
// files are those of one process, and the index of the malformed model fails once and is not retried.
func testList(t *testing.T, c *cluster) {
	const models = 200
	s := c.site(t, "list")
	c.makeModels(t, s.folder, models)
	malformed := "/data/models/malformed.onnx"
	addMalformed(t, s.folder, malformed)
	reference := dataFolder(t)
	if err := os.CopyFS(reference, os.DirFS(s.folder)); err != nil {
		t.Fatal(err)
	}
	one, _ := c.mcompress(t, reference, "quantize", "--files-from", "/data/list.txt", "-o", "/data/compressed/", "--if-changed", "--json")
	if one.Code != 4 {
		t.Fatalf("one process ends with exit code %d", one.Code)
	}

	t.Logf("one process: %+v", one)
	m := listManifest(t)
	began := time.Now()
	s.create(t, m)
	kills := s.killAtRandom(t, m.name(), 24)
	j := s.finish(t, m.name(), 10*time.Minute)
	t.Logf("%d models by 16 indexes in %.0f s, of which %d were killed and %d evicted", models, time.Since(began).Seconds(), kills.killed, kills.evicted)

	written, upToDate := map[string]int{}, 0
	failed := map[string][]int{} // exit codes of the index with the malformed model
	for _, e := range s.containers(m.name()) {
		for _, l := range e.lines(t) {
			switch {
			case l.Model == malformed:
				failed[e.pod.index()] = append(failed[e.pod.index()], e.Code)
			case l.Result == "written":
				written[l.Model]++
			case l.Result == "up-to-date":
				upToDate++
			case l.Event == "model":
				t.Errorf("%s: %+v", e.pod.Metadata.Name, l)
			}
		}
	}
	for name, n := range written {
		if n > 1 {
			t.Errorf("%s was written %d times", name, n)
		}
	}
	// The result of a process that was killed between the result and its line is up to date for the next one.
	if n := len(written) + kills.killed + kills.evicted; n < models {
		t.Errorf("%d models were written, and %d processes ended early, of %d models", len(written), kills.killed+kills.evicted, models)
	}
	sameFiles(t, filepath.Join(s.folder, "compressed"), filepath.Join(reference, "compressed"))
	if !j.has("Failed") || j.Status.FailedIndexes == "" || len(failed) != 1 {
		t.Errorf("job: %+v, exit codes by index of the malformed model: %v", j.Status, failed)
	}
	_ = upToDate
}

// addMalformed adds a model to the list that is not valid.
func addMalformed(t *testing.T, folder, path string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(conform.Shared(t), "hostile", "cycle_transpose.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, strings.TrimPrefix(path, "/data/")), content, 0o644); err != nil {
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

// kills are the numbers of containers that were killed and of pods that were evicted.
type kills struct{ killed, evicted int }

// killAtRandom kills containers of a Job or evicts their pods until it has done so n times or the Job has ended. An index is killed once, as its retries
// are delayed and counted, which those after an eviction are not.
func (s *site) killAtRandom(t *testing.T, name string, n int) (k kills) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	once := map[string]bool{}
	for k.killed+k.evicted < n {
		time.Sleep(time.Duration(50+rng.IntN(400)) * time.Millisecond)
		evict := rng.IntN(2) == 0
		index, err := s.node.kill(t.Context(), s.namespace, rng, evict, func(index string) bool { return !evict && once[index] })
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
				return k
			}
		case evict:
			k.evicted++
		default:
			k.killed++
			once[index] = true
		}
	}
	return k
}
