package manifest

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// hostile has what YAML, Kubernetes and shells replace or end.
const hostile = `/data/it's "$(HOME)" $HOME ` + "`id`" + ` #: é`

func run() Run {
	return Run{
		Name: "mcompress-out-1a2b3c4d", Version: "v1.2.3", Folder: hostile, Dir: "/data", Workers: 8, Flags: []string{"--workers", "2"},
		Image: "mcompress:1.2.3", Claim: "models", MountPath: "/data", CPUs: 2, Memory: 300<<20 + 1, Scratch: 64 << 20, Grace: 25 * time.Second,
	}
}

func write(t *testing.T, scheduler string, r Run) string {
	t.Helper()
	b := &strings.Builder{}
	if err := Write(b, scheduler, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A job is the part of a manifest that depends on the run.
type job struct {
	Metadata struct{ Name string }
	Spec     struct {
		Completions, Parallelism int
		PodFailurePolicy         struct{ Rules []struct{ Action string } } `yaml:"podFailurePolicy"`
		Template                 struct {
			Spec struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []struct {
					Image      string
					Args       []string
					WorkingDir string           `yaml:"workingDir"`
					EnvFrom    []map[string]any `yaml:"envFrom"`
					Resources  struct{ Limits map[string]string }
					Mounts     []struct {
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []map[string]any
			}
		}
	}
}

func parse(t *testing.T, text string) (jobs []job) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	for range 2 {
		var j job
		if err := d.Decode(&j); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

func TestKubernetes(t *testing.T) {
	jobs := parse(t, write(t, "kubernetes", run()))
	folder := strings.ReplaceAll(hostile, "$(", "$$(") // Kubernetes replaces $(NAME) in arguments
	for i, want := range [][]string{{"--workers", "2", "work", folder}, {"--workers", "2", "finalize", folder, "--wait", "24h"}} {
		spec := jobs[i].Spec.Template.Spec
		c := spec.Containers[0]
		if !slices.Equal(c.Args, want) || c.Image != "mcompress:1.2.3" || c.WorkingDir != "/data" || c.EnvFrom != nil {
			t.Errorf("container: %+v, want the arguments %q", c, want)
		}
		// A process that gets SIGTERM before it handles signals ends with 2 as the first one of a container.
		if rules := jobs[i].Spec.PodFailurePolicy.Rules; len(rules) != 2 || rules[0].Action != "Ignore" {
			t.Errorf("%+v: an eviction has to be ignored whatever the exit code", rules)
		}
		if l := c.Resources.Limits; l["memory"] != "301Mi" || l["cpu"] != "2" || l["ephemeral-storage"] != "64Mi" {
			t.Errorf("limits: %v", l)
		}
		if len(spec.Volumes) != 2 || c.Mounts[1].MountPath != "/data" || spec.TerminationGracePeriodSeconds != 30 {
			t.Errorf("volumes: %v, %v, grace %d", spec.Volumes, c.Mounts, spec.TerminationGracePeriodSeconds)
		}
	}
	if w := jobs[0]; w.Metadata.Name != "mcompress-out-1a2b3c4d-work" || w.Spec.Completions != 8 || w.Spec.Parallelism != 8 {
		t.Errorf("workers: %+v", w)
	}
}

// A plan in object storage has no volume, but credentials.
func TestKubernetesWithoutVolume(t *testing.T) {
	r := run()
	r.Folder, r.Dir, r.Claim, r.Secret = "s3://models/out", "", "", "aws"
	for _, j := range parse(t, write(t, "kubernetes", r)) {
		spec := j.Spec.Template.Spec
		if c := spec.Containers[0]; len(spec.Volumes) != 1 || len(c.Mounts) != 1 || len(c.EnvFrom) != 1 || c.WorkingDir != "" {
			t.Errorf("%+v", spec)
		}
	}
}

// The script is valid, and the shell that runs its jobs has the arguments as they are.
func TestSlurm(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no POSIX shell")
	}
	text := write(t, "slurm", run())
	script := `sbatch() { echo "sbatch $*" >&2; (srun() { printf '<%s>' "$@" >&2; }; cd() { :; }; . /dev/stdin); echo 7; }
` + text
	c := exec.Command(sh, "-s")
	c.Stdin = strings.NewReader(script)
	out := &strings.Builder{}
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"sbatch --parsable --job-name=mcompress-out-1a2b3c4d-work --array=0-7\n",
		"<mcompress><--workers><2><work><" + hostile + ">",
		"--dependency=afterok:7 --kill-on-invalid-dep=yes\n",
		"<finalize><" + hostile + ">",
		"workers: job 7, then job 7\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for code, attempts := range map[int]int{1: 4, 143: 4, 2: 1, 70: 1} { // of the first job, whose failure ends the script
		c := exec.Command(sh, "-s")
		c.Stdin = strings.NewReader(fmt.Sprintf("sbatch() { (srun() { echo attempt >&2; return %d; }; cd() { :; }; . /dev/stdin); echo 7; }\n", code) + text)
		out, err := c.CombinedOutput()
		if n := strings.Count(string(out), "attempt\n"); n != attempts {
			t.Errorf("%d attempts that end with exit code %d, want %d: %v", n, code, attempts, err)
		}
	}
	for _, want := range []string{"--cpus-per-task=2", "--mem=301M"} {
		if strings.Count(text, want) != 2 {
			t.Errorf("%s is not in both jobs", want)
		}
	}
}

// Names are DNS labels, also with the suffix of a pod's host name.
func TestName(t *testing.T) {
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	for folder, want := range map[string]string{
		"/data/Out.v2": "mcompress-out-v2-1a2b3c4d", "s3://bucket/": "mcompress-bucket-1a2b3c4d", "/": "mcompress-1a2b3c4d",
		"/_" + strings.Repeat("a-", 40): "mcompress-" + strings.Repeat("a-", 14) + "a-1a2b3c4d",
	} {
		got := Name(folder, "1a2b3c4dffff")
		if got != want || !label.MatchString(got) || len(got)+len("-work-99999") > 63 {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
}

func TestUnknownScheduler(t *testing.T) {
	if err := Write(&strings.Builder{}, "nomad", run()); err == nil {
		t.Error("no error")
	}
}
