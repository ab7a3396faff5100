package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// workers is the number of workers of the plans.
const workers = 8

// plan makes a plan of a command in the folder divided of the claim, and returns the manifests of its workers and its
// finalizer.
func (s *site) plan(t *testing.T, command ...string) (work, finalize manifest) {
	t.Helper()
	_, text := succeeds(t, s.image, s.folder, append([]string{"plan", "-n", "8", "-o", "/data/divided",
		"--emit", "kubernetes", "--volume", "models:/data", "--"}, command...)...)
	both := manifests(text)
	if len(both) != 2 {
		t.Fatalf("plan prints %s", text)
	}
	return both[0], both[1]
}

// alone runs the command of a plan in one process, into the folder alone of the claim.
func (s *site) alone(t *testing.T, command ...string) (usage, string) {
	t.Helper()
	return succeeds(t, s.image, s.folder, append([]string{command[0], "--data-files", "8", "-o", "/data/alone/"},
		command[1:]...)...)
}

// planFiles are the names of the files of a plan next to its result.
var planFiles = []string{"plan.json", "finalized.json"}

// sameResult checks that the result of the plan is that of one process.
func (s *site) sameResult(t *testing.T) {
	t.Helper()
	sameFiles(t, filepath.Join(s.folder, "divided"), filepath.Join(s.folder, "alone"), planFiles...)
}

// realModel puts a model of the shared material into a folder, as model.onnx, and a file of its data.
func realModel(t *testing.T, folder, model, data string) {
	t.Helper()
	fixtures := filepath.Join(conform.Shared(t), "fixtures")
	for from, to := range map[string]string{filepath.Join("models", model, "model.onnx"): "model.onnx",
		filepath.Join("datasets", data): filepath.Base(data)} {
		content, err := os.ReadFile(filepath.Join(fixtures, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, to), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The real model and data of the cases.
const (
	miniLM = "transformer/minilm_l6_v2_vocab3086"
	tokens = "sms_spam/sms800_tokens.npz"
)

// Workers of a plan are killed at random, and then two finalizers run at once: one completes the result, which is that
// of one process, and the other one is retried and finds it complete.
func testFinalizers(t *testing.T, c *cluster) {
	s := c.site(t, "finalizers", dataFolder(t))
	realModel(t, s.folder, miniLM, tokens)
	command := []string{"quantize", "--method", "weight-int4", "--algo", "hqq", "--data", "/data/sms800_tokens.npz",
		"--limit", "16", "/data/model.onnx"}
	one, _ := s.alone(t, command...)
	work, finalize := s.plan(t, command...)
	began := time.Now()
	s.create(t, work)
	early := s.killAtRandom(t, work.name(), 8)
	s.complete(t, work.name(), 10*time.Minute)
	other := finalize.replaced(t, "name: "+finalize.name(), "name: "+finalize.name()+"-2")
	s.create(t, finalize)
	s.create(t, other)
	s.complete(t, finalize.name(), 5*time.Minute)
	s.complete(t, other.name(), 5*time.Minute)
	finalizers := append(s.containers(finalize.name()), s.containers(other.name())...)
	c.results = append(c.results, result{"plan of MiniLM, two finalizers", early, time.Since(began).Seconds(), one,
		s.containers(work.name()), finalizers})
	if count(finalizers, 0) != 2 || count(finalizers, 1) == 0 {
		for _, e := range finalizers {
			t.Errorf("a finalizer ends with exit code %d: %s", e.Code, tail(e.output))
		}
	}
	s.sameResult(t)
}

// A model of 5 GB is divided between 8 indexes.
func testLarge(t *testing.T, c *cluster) {
	s := c.site(t, "large", dataFolder(t))
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	scale := exec.Command("go", "run", "./internal/dev/scale", "-kind", "decoder", "-n", "4",
		filepath.Join(s.folder, "model.onnx"))
	scale.Dir = root
	if out, err := scale.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	command := []string{"quantize", "--method", "weight-int4", "/data/model.onnx"}
	one, _ := s.alone(t, command...)
	work, finalize := s.plan(t, command...)
	began := time.Now()
	s.create(t, work)
	s.create(t, finalize)
	s.complete(t, work.name(), 30*time.Minute)
	s.complete(t, finalize.name(), 10*time.Minute)
	seconds := time.Since(began).Seconds()
	all, last := s.containers(work.name()), s.containers(finalize.name())
	c.results = append(c.results, result{"plan of 5 GB", 0, seconds, one, all, last})
	logUsage(t, append(all, last...))
	s.sameResult(t)
}

// logUsage prints what containers have used.
func logUsage(t *testing.T, all []ended) {
	t.Helper()
	for _, e := range all {
		t.Logf("%s: exit code %d, out of memory: %t, %.1f s, %.1f s of CPU time, %d MiB", e.pod.Metadata.Name, e.Code,
			e.OutOfMemory, e.Seconds, e.CPU, e.Memory>>20)
	}
}

// speedUp is the minimum by which 8 workers are faster than one process in the measurement of sensitivities. It was 5.7
// to 5.9: each worker opens the model, calibrates and builds the candidates, about a second, and the slowest has a
// tenth more than the mean.
const speedUp = 5

// The sensitivities of MiniLM are measured by 8 workers, whose result is that of one process. Each has one core, and
// they run one after the other, as they do not wait for each other: together they would share caches, which independent
// machines do not. The seconds of such machines are the CPU seconds of the processes: those of one process, divided by
// those of the slowest worker and of the finalizer, which begins after it.
func testSensitivity(t *testing.T, c *cluster) {
	s := c.site(t, "sensitivity", dataFolder(t))
	realModel(t, s.folder, miniLM, tokens)
	command := []string{"quantize", "--sensitivity", "--data", "/data/sms800_tokens.npz", "--limit", "16",
		"/data/model.onnx"}
	one, want := succeeds(t, s.image, s.folder, append([]string{"--workers", "1"}, command...)...)
	work, finalize := s.plan(t, command...)
	began := time.Now()
	s.create(t, work.replaced(t, "parallelism: 8", "parallelism: 1"))
	s.create(t, finalize)
	s.complete(t, work.name(), 30*time.Minute)
	s.complete(t, finalize.name(), 10*time.Minute)
	all, last := s.containers(work.name()), s.containers(finalize.name())
	c.results = append(c.results, result{"sensitivity of MiniLM", 0, time.Since(began).Seconds(), one, all, last})
	logUsage(t, append(all, last...))
	_, slowest, _ := sum(all)
	end, _, _ := sum(last)
	factor := one.CPU / (slowest + end)
	t.Logf("%d workers: %.1f s of one process, %.1f s of the slowest worker and %.1f s of the finalizer: %.2f times as fast", workers, one.CPU, slowest, end, factor)
	if factor < speedUp {
		t.Errorf("%.2f times as fast, want %d", factor, speedUp)
	}
	got, err := os.ReadFile(last[len(last)-1].output)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(want, " dB\n") || string(got) != want {
		t.Errorf("the finalizer prints\n%s\none process\n%s", got, want)
	}
}
