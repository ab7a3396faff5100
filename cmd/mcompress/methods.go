package main

import (
	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/sparse"
)

// methods is the list of methods: a new one is a line here.
var methods = []*pass.Method{
	quantize.DynamicInt8,
	quantize.StaticInt8,
	quantize.WeightInt8,
	quantize.WeightInt4,
	quantize.WeightInt2,
	quantize.Float16,
	quantize.BFloat16,
	quantize.Float8,
	quantize.Float4,
	quantize.FoldBatchNorm,
	quantize.Equalize,
	quantize.Smooth,
	prune.L1,
	prune.L1Global,
	prune.L2,
	prune.Random,
	prune.NM,
	prune.Channel,
	prune.LowRank,
	prune.Blocks,
	distill.Distill,
	distill.FineTune,
	sparse.Auto,
	sparse.COO,
	sparse.CSR,
	sparse.BSR,
	sparse.Bitmask,
	sparse.Delta,
	sparse.Dense,
}

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
