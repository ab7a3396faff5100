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

// pytorch trains in float32, or with autocast to bfloat16, and with activation checkpointing if how has both.
func (b *bench) pytorch(ctx context.Context, tr training, threads int, how ...string) (*torch, error) {
	args := []string{"-c", torchScript, tr.net, strconv.Itoa(tr.batch), tr.set["optimizer"], strconv.Itoa(threads)}
	cmd := exec.CommandContext(ctx, b.torch, append(args, how...)...)
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

// steps are the times of n steps.
func (p *torch) steps(n int) (took times, err error) {
	text, err := p.ask(strconv.Itoa(n))
	if err != nil {
		return took, err
	}
	for i, word := range strings.Fields(text) {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return took, err
		}
		if i%2 == 0 {
			took.wall = append(took.wall, x)
		} else {
			took.cpu = append(took.cpu, x)
		}
	}
	return took, nil
}
