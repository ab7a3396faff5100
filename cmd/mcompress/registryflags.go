package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// registryFlags are the flags of connections to registries.
type registryFlags struct {
	plainHTTP bool
	insecure  bool
	overwrite bool
}

func (r *registryFlags) declare(fs *flag.FlagSet, overwrites string) {
	r.connect(fs)
	fs.BoolVar(&r.overwrite, "overwrite", false, overwrites)
}

// connect declares the flags of reading from a registry.
func (r *registryFlags) connect(fs *flag.FlagSet) {
	fs.BoolVar(&r.plainHTTP, "plain-http", false, "connect to the registry without TLS; loopback addresses only")
	fs.BoolVar(&r.insecure, "insecure", false, "do not verify the TLS certificate of the registry; prints a warning")
}

// connection returns the options of requests without a progress bar.
func (r *registryFlags) connection() registry.Options {
	return registry.Options{PlainHTTP: r.plainHTTP, Insecure: r.insecure, Overwrite: r.overwrite}
}

// warn warns of a connection that is insecure.
func (r *registryFlags) warn(t *tool, command string, ref registry.Reference) {
	if r.insecure && ref.Host != "" {
		printError(t.stderr, fmt.Errorf("%s: warning: --insecure: the certificate of %s is not verified", command, ref.Host))
	}
}

// options returns the options of a transfer, with a warning if it is insecure. stop ends the progress bar.
func (r *registryFlags) options(t *tool, command string, ref registry.Reference) (o registry.Options, stop func()) {
	r.warn(t, command, ref)
	return r.transfer(t, ref)
}

// transfer returns the options of a transfer. stop ends the progress bar.
func (r *registryFlags) transfer(t *tool, ref registry.Reference) (o registry.Options, stop func()) {
	o = r.connection()
	p := t.newProgress(ref.Name)
	if p != nil {
		o.Progress = p.show
	}
	return o, p.stop
}

// parseReference parses an argument.
func parseReference(text string) (registry.Reference, error) {
	ref, err := registry.Parse(text)
	if err != nil {
		return ref, &usageError{err}
	}
	return ref, nil
}

// pushFlags are the flags of commands that compress.
type pushFlags struct {
	registryFlags
	dest string
}

const overwritesTag = "replace a tag, alias or file that exists with other content"

func (p *pushFlags) flags() []cli.Flag {
	return group("registry", func(fs *flag.FlagSet) {
		fs.StringVar(&p.dest, "push", "", "push the result and its reports to `dest`, such as oci://HOST/REPOSITORY:TAG, if all gates held; see mcompress push --help")
		p.declare(fs, "with --push: "+overwritesTag)
	})
}

// check refuses a destination before the work: invalid references, unknown hosts, wrong credentials.
func (p *pushFlags) check(ctx context.Context, t *tool, command string, models []string, dry bool) error {
	switch {
	case p.dest == "":
		return nil
	case len(models) > 1:
		return usagef("--push requires one model, not %d", len(models))
	case dry:
		return usagef("--push and --dry-run exclude each other")
	}
	ref, err := parseReference(p.dest)
	if err != nil {
		return err
	}
	p.warn(t, command, ref)
	return registry.Check(ctx, ref, p.connection())
}

// push pushes a model that is complete, with its reports, and prints the result; with --json to stderr, as stdout has the report.
func (p *pushFlags) push(ctx context.Context, t *tool, model, reportDir string, card report.Card) error {
	ref, err := parseReference(p.dest)
	if err != nil {
		return err
	}
	o, stop := p.transfer(t, ref) // check has warned
	o.Card = card
	pushed, err := t.pushModel(ctx, ref, model, reportDir, o)
	stop()
	if err != nil {
		return fmt.Errorf("the result %s is complete, but not pushed: %w", model, err)
	}
	if t.json {
		return mcli.Pushed(t.stderr, mcli.Style{}, model, pushed)
	}
	return mcli.Pushed(t.stdout, t.style(), model, pushed)
}

// pushModel collects the files of a model and pushes them, unless a gate of its report did not hold.
func (t *tool) pushModel(ctx context.Context, ref registry.Reference, model, reportDir string, o registry.Options) (*registry.Pushed, error) {
	c := registry.CollectOptions{ReportDir: reportDir}
	p := t.newProgress(model)
	if p != nil {
		c.Progress = p.show
	}
	a, err := registry.Collect(ctx, model, c)
	p.stop()
	if err != nil {
		return nil, err
	}
	if err := passed(a); err != nil {
		return nil, err
	}
	return registry.Push(ctx, ref, a, o)
}

// pullDir is the folder of a pull: by default named after the model.
func pullDir(ref registry.Reference, output string) (string, error) {
	if output != "" {
		return output, nil
	}
	if ref.Host == "" {
		return "", errors.New("--output with the path of a folder is required")
	}
	return filepath.Base(filepath.FromSlash(ref.Name)), nil
}

// passed returns an error if a gate of the artifact's report did not hold.
func passed(a *registry.Artifact) error {
	f, ok := a.Find(registry.ReportJSON)
	if !ok {
		return nil
	}
	r, err := openReport(f.Path)
	if err != nil {
		return err
	}
	if !r.Passed() {
		return &gateError{fmt.Errorf("%s: the verdict is %s: it is not pushed", f.Path, r.Verdict.Text())}
	}
	return nil
}
