package mcompress

import (
	"slices"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/sparse"
)

// Methods lists all compression methods.
func Methods() []*pass.Method {
	return slices.Concat(quantize.Methods(), prune.Methods(), distill.Methods(), sparse.Methods())
}
