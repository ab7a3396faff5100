package manifest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed kubernetes.yaml.tmpl
var kubernetes string

//go:embed slurm.sh.tmpl
var slurm string

// templates are those of the schedulers.
var templates = map[string]string{"kubernetes": kubernetes, "slurm": slurm}

// Schedulers are the names of those for which there are manifests.
func Schedulers() []string { return slices.Sorted(maps.Keys(templates)) }

// A Run is a plan that a scheduler runs. Zero values of optional fields are left out.
type Run struct {
	Name    string // of the jobs: see Name
	Version string // of mcompress
	Folder  string // of the plan: an absolute path or a URL
	Dir     string // in which the processes run: an absolute path, optional for Kubernetes
	Workers int
	Flags   []string // global flags of the processes

	Arguments []string // flags of the commands work and finalize

	Image     string // of the container
	Claim     string // the PersistentVolumeClaim with the folder and the model, optional
	MountPath string // of its volume
	Secret    string // whose keys are environment variables, such as the credentials of object storage, optional

	CPUs    int
	Memory  int64         // bytes of a process, all included
	Scratch int64         // bytes of local storage of a process
	Grace   time.Duration // after SIGTERM, after which a process ends
}

// margin is the time after the grace period at which a scheduler kills a process.
const margin = 5 * time.Second

// unnamed matches what the name of a Kubernetes object may not have.
var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

// maxName bounds a name so that it is a DNS label with the suffixes of the jobs and those that Kubernetes adds to the
// names of pods.
const maxName = 30

// Name is the name of the jobs of a plan, a DNS label: that of its folder, and the beginning of an identity.
func Name(folder, identity string) string {
	base := unnamed.ReplaceAllString(strings.ToLower(path.Base(folder)), "-")
	if len(base) > maxName {
		base = base[:maxName]
	}
	return strings.Trim("mcompress-"+strings.Trim(base, "-"), "-") + "-" + identity[:min(8, len(identity))]
}

// Write writes the file for a scheduler, "kubernetes" or "slurm".
func Write(w io.Writer, scheduler string, r Run) error {
	functions := template.FuncMap{
		"yaml":    quote,
		"args":    func(arg ...string) (string, error) { return arguments(slices.Concat(r.Flags, arg, r.Arguments)) },
		"sh":      shell,
		"mebi":    func(n int64) int64 { return (n + 1<<20 - 1) >> 20 },
		"last":    func() int { return r.Workers - 1 },
		"seconds": func() int { return int((r.Grace + margin + time.Second - 1) / time.Second) },
	}
	text, ok := templates[scheduler]
	if !ok {
		return fmt.Errorf("manifest: unknown scheduler %q", scheduler)
	}
	return template.Must(template.New(scheduler).Funcs(functions).Parse(text)).Execute(w, r)
}

// quote quotes text as JSON, which YAML includes.
func quote(text string) (string, error) {
	b := &strings.Builder{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// arguments is a list of arguments of a container, in which Kubernetes replaces $(NAME) by an environment variable
// unless the $ is doubled.
func arguments(args []string) (string, error) {
	quoted := make([]string, len(args))
	for i, a := range args {
		var err error
		if quoted[i], err = quote(strings.ReplaceAll(a, "$(", "$$(")); err != nil {
			return "", err
		}
	}
	return "[" + strings.Join(quoted, ", ") + "]", nil
}

// safe matches words that a shell takes literally.
var safe = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+-]+$`)

// shell quotes words for a POSIX shell.
func shell(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; !safe.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
