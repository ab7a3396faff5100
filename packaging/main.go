package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// A release is one run: where the sources and the results are, and what the files contain.
type release struct {
	version version
	epoch   time.Time // of all entries of archives
	sources string    // the root of the repository
	out     string
	targets []target
}

func run() error {
	r, err := options()
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty", r.out)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	return r.make()
}

func options() (*release, error) {
	tag := flag.String("version", "", "`version`, such as v1.2.3")
	out := flag.String("out", "", "`folder` of the results")
	sources := flag.String("sources", "..", "root `folder` of the repository")
	platforms := flag.String("platforms", "", "space-separated `platforms`, such as linux/amd64; all if empty")
	flag.Parse()
	if flag.NArg() > 0 || *out == "" {
		return nil, errors.New("-version and -out are required, and no arguments")
	}
	v, err := parseVersion(*tag)
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	list, err := selected(strings.Fields(*platforms))
	return &release{v, time.Unix(seconds, 0).UTC(), *sources, *out, list}, err
}

// make builds the programs and packs them; the checksums are written last.
func (r *release) make() error {
	common, err := r.common()
	if err != nil {
		return err
	}
	programs := make([]*program, len(r.targets))
	var group errgroup.Group
	group.SetLimit(2) // the go command itself uses all CPUs
	for i, t := range r.targets {
		group.Go(func() (err error) {
			if programs[i], err = r.program(t); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			if err := r.pack(programs[i], common); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.launcher(programs); err != nil {
		return err
	}
	if err := r.image(programs); err != nil {
		return err
	}
	if err := r.formula(); err != nil {
		return err
	}
	return r.checksums()
}

// pack writes the packages of one program.
func (r *release) pack(p *program, common []file) error {
	packages := []func() error{
		func() error { return r.write(p.name(r.version)+".cdx.json", p.sbom) },
		func() error { return r.archive(p, common) },
		func() error { return r.wheel(p) },
	}
	if p.target.npm != "" {
		packages = append(packages, func() error { return r.npm(p) })
	}
	for _, write := range packages {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// write writes a result.
func (r *release) write(name string, data []byte) error {
	path := filepath.Join(r.out, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// read reads a file of the repository.
func (r *release) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.sources, filepath.FromSlash(name)))
}
