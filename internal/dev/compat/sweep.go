package main

import (
	"context"
	"fmt"
	"os"
)

// A sweep measures files in runtimes and saves each result, so that a later one resumes it.
type sweep struct {
	models   []model
	variants []variant
	runtimes []runtime
	seconds  float64
	memory   bool // measure the memory of large models only
	matrix   *matrix
	partial  string // path of the saved results
	browser  worker // kept, as starting one takes seconds
}

func (s *sweep) run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "compat")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	make, err := newMaker(ctx, folder)
	if err != nil {
		return err
	}
	if err := s.versions(); err != nil {
		return err
	}
	referring, err := startAll(references())
	if err != nil {
		return err
	}
	defer closeAll(referring)
	defer func() {
		if s.browser != nil {
			s.browser.close()
		}
	}()
	for _, m := range s.models {
		if s.memory {
			m, err = writeLarge(ctx, m.Name, folder)
			if err != nil {
				return err
			}
		}
		for _, v := range s.variants {
			if err := s.file(ctx, make, referring, m, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// versions records the versions of the runtimes and drops results of other ones.
func (s *sweep) versions() error {
	for _, r := range s.runtimes {
		version, err := r.version()
		if err != nil {
			return err
		}
		if s.matrix.Versions[r.Name] != version {
			s.matrix.drop(r.Name)
		}
		s.matrix.Versions[r.Name] = version
	}
	return nil
}

func (s *sweep) file(ctx context.Context, make *maker, referring []worker, m model, v variant) error {
	x, forms, err := prepare(ctx, make, m, v)
	if err != nil {
		return err
	}
	d, err := digest(x.path)
	if err != nil {
		return err
	}
	f := s.matrix.file(v.Name, m.Name, d, forms)
	for _, r := range s.runtimes {
		if f.Cells[r.Name] != nil {
			continue
		}
		if x.reference == nil {
			x.refer(referring)
		}
		c, err := s.measure(x, r)
		if err != nil {
			return err
		}
		f.Cells[r.Name] = c
		fmt.Printf("%s, %s, %s: %s %.2f× %d MiB %s\n", m.Name, v.Name, r.Name, c.State, c.Speed, c.Memory>>20, c.Error)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return s.matrix.write(s.partial)
}

func (s *sweep) measure(x *subject, r runtime) (*cell, error) {
	w := s.browser
	if !r.Browser || w == nil {
		var err error
		if w, err = start(r); err != nil {
			return nil, err
		}
	}
	if r.Browser {
		s.browser = w
	} else {
		defer w.close()
	}
	if r.Untimed || s.memory {
		c, a := x.check(w)
		c.Memory = a.Memory
		if s.memory {
			c.Resident = a.Resident
		}
		return c, nil
	}
	return x.measure(w, s.seconds), nil
}

func startAll(runtimes []runtime) ([]worker, error) {
	var workers []worker
	for _, r := range runtimes {
		w, err := start(r)
		if err != nil {
			closeAll(workers)
			return nil, err
		}
		workers = append(workers, w)
	}
	return workers, nil
}

func closeAll(workers []worker) {
	for _, w := range workers {
		w.close()
	}
}
