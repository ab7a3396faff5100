package main

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/manifest"
	"github.com/mcompress/mcompress/internal/memory"
)

// manifestFlags are the flags of the manifest of a plan.
type manifestFlags struct {
	emit   mcli.Enum
	image  string
	volume string
	secret string
}

func newManifestFlags() *manifestFlags {
	version, _, _ := strings.Cut(mcompress.Version(), "+") // a tag has no build metadata
	return &manifestFlags{emit: mcli.Enum{Words: manifest.Schedulers()}, image: "mcompress:" + strings.TrimPrefix(version, "v")}
}

func (m *manifestFlags) flags(fs *flag.FlagSet) {
	fs.Var(&m.emit, "emit", "print what runs the plan on this `scheduler`: "+strings.Join(m.emit.Words, ", ")+". --workers is the number of CPUs of each process (default: 1)")
	fs.StringVar(&m.image, "image", m.image, "`image` of the containers, for Kubernetes")
	fs.StringVar(&m.volume, "volume", "", "`claim:path`: the PersistentVolumeClaim with the folder, the model and all other files, and its path here and in the containers, for Kubernetes")
	fs.StringVar(&m.secret, "secret", "", "Kubernetes Secret with environment variables of the containers, by its `name`: the credentials of object storage")
}

// check rejects invalid combinations of flags.
func (m *manifestFlags) check(t *tool, folder string) error {
	claim, mount, ok := strings.Cut(m.volume, ":")
	switch {
	case m.emit.Value == "":
		return m.unused("--image, --volume and --secret require --emit kubernetes")
	case t.json:
		return usagef("--json and --emit exclude each other")
	case m.emit.Value != "kubernetes":
		return m.unused("--image, --volume and --secret are for --emit kubernetes")
	case m.volume != "" && (!ok || claim == "" || !path.IsAbs(mount)):
		return usagef("--volume %s: use CLAIM:PATH with an absolute path, such as models:/data", m.volume)
	case m.volume == "" && !mcli.IsURL(folder):
		return usagef("--emit kubernetes requires --volume, or a plan in object storage")
	}
	return nil
}

// unused is an error if a flag is given that is of no use.
func (m *manifestFlags) unused(text string) error {
	if m.volume != "" || m.secret != "" || m.image != newManifestFlags().image {
		return usagef("%s", text)
	}
	return nil
}

// run is the plan as its manifest has it; nil for no manifest.
func (m *manifestFlags) run(c *cli.Context, t *tool, p *mcompress.Plan, args []string) (*manifest.Run, error) {
	if m.emit.Value == "" {
		return nil, nil
	}
	r := &manifest.Run{
		Version: mcompress.Version(), Folder: p.Folder(), Workers: p.Workers,
		Image: m.image, Secret: m.secret, CPUs: 1, Grace: t.grace,
	}
	r.Claim, r.MountPath, _ = strings.Cut(m.volume, ":")
	if isGiven(c, "workers") {
		r.CPUs = t.workers
	}
	var err error
	if r.Dir, err = filepath.Abs("."); err != nil {
		return nil, err
	}
	if !mcli.IsURL(p.Folder()) {
		if r.Folder, err = filepath.Abs(p.Folder()); err != nil {
			return nil, err
		}
	}
	if m.emit.Value == "kubernetes" {
		// The processes read the policy again, in their containers.
		policy, err := t.policyPath()
		if err != nil {
			return nil, err
		}
		if err := m.within(r, slices.Concat(args, []string{r.Folder, policy})); err != nil {
			return nil, err
		}
	}
	// Both are written into lines of YAML or of a shell, which quoting does not continue.
	if text := r.Folder + r.Dir; strings.ContainsFunc(text, unicode.IsControl) {
		return nil, usagef("--emit: %q has control characters", text)
	}
	r.Name = manifest.Name(filepath.ToSlash(r.Folder), p.Identity.Source)
	// A process that exceeds it is killed: the budget, what planning measured besides tensors, and the stacks of
	// threads.
	r.Memory = int64(t.memory) + p.Memory + memory.Threads(r.CPUs)
	r.Scratch = scratch
	if mcli.IsURL(p.Folder()) {
		// Without a shared folder, files of other processes are received into local ones.
		r.Scratch += p.Exchanged()
	}
	r.Flags = t.given(r.CPUs)
	// Whoever has the manifest made it together with the plan.
	if v := p.Request.Verification; len(v.Command) > 0 || v.Library != "" {
		r.Arguments = []string{"--allow-programs"}
	}
	return r, nil
}

// scratch is the local storage of a process whose plan is in a shared folder: its log.
const scratch = 64 << 20

// within checks that files among the arguments are on the volume, and keeps the working folder only if it is.
func (m *manifestFlags) within(r *manifest.Run, args []string) error {
	on := func(path string) bool {
		rel, err := filepath.Rel(r.MountPath, path)
		return m.volume != "" && err == nil && filepath.IsLocal(rel)
	}
	for _, name := range args {
		if _, value, ok := strings.Cut(name, "="); ok && strings.HasPrefix(name, "-") {
			name = value
		}
		if _, err := os.Stat(name); err != nil {
			continue // not a file
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		if !on(abs) {
			return usagef("%s is not on the volume: --volume %s", abs, m.volume)
		}
	}
	if !on(r.Dir) {
		r.Dir = ""
	}
	return nil
}
