package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

//go:embed pytorch.py
var torchScript string

// A torch is a process of PyTorch that trains on request.
type torch struct{ talker }

func (b *bench) pytorch(ctx context.Context, tr training, threads int) (*torch, error) {
	cmd := exec.CommandContext(ctx, b.torch, "-c", torchScript, tr.net, strconv.Itoa(tr.batch), tr.set["optimizer"], strconv.Itoa(threads))
	t, err := talk(cmd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; -torch names a Python that has PyTorch", b.torch, err)
	}
	p := &torch{t}
	if _, err := p.line(); err != nil { // its version
		return nil, err
	}
	_, err = p.steps(2) // warms up
	return p, err
}

// steps are the seconds of n steps.
func (p *torch) steps(n int) ([]float64, error) {
	text, err := p.ask(strconv.Itoa(n))
	if err != nil {
		return nil, err
	}
	var took []float64
	for _, word := range strings.Fields(text) {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, err
		}
		took = append(took, x)
	}
	return took, nil
}
