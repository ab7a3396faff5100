package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// results are numbers by names, in a file of lines: runs that ended are not repeated by the next run of the program.
type results struct {
	file  string
	lock  sync.Mutex
	value map[string]float64
}

// openResults reads the file, if it exists.
func openResults(file string) (*results, error) {
	r := &results{file: file, value: map[string]float64{}}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		i := strings.LastIndexByte(lines.Text(), '\t')
		if i < 0 {
			continue
		}
		if x, err := strconv.ParseFloat(lines.Text()[i+1:], 64); err == nil {
			r.value[lines.Text()[:i]] = x
		}
	}
	return r, lines.Err()
}

// known returns the result of a name.
func (r *results) known(name string) (float64, bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	x, ok := r.value[name]
	return x, ok
}

// add adds a result to the file.
func (r *results) add(name string, x float64) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.value[name] = x
	f, err := os.OpenFile(r.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\t%.4f\n", name, x)
	return errors.Join(err, f.Close())
}

// once returns the known result of a name, or adds that of run.
func (r *results) once(name string, run func() (float64, error)) (float64, error) {
	if x, ok := r.known(name); ok {
		return x, nil
	}
	x, err := run()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return x, r.add(name, x)
}
