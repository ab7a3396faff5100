package main

import (
	"slices"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/sparse"
)

// methods are all methods.
var methods = slices.Concat(quantize.Methods(), prune.Methods(), distill.Methods(), sparse.Methods())

// offered are the methods that a command offers.
func offered(command string) []*pass.Method {
	var ms []*pass.Method
	for _, m := range methods {
		if m.Command == command {
			ms = append(ms, m)
		}
	}
	return ms
}
