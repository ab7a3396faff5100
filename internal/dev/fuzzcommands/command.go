package main

import (
	"flag"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/sparse"
)

// plain are the commands that do not compress; M is the model.
var plain = [][]string{
	{"inspect", "M"}, {"inspect", "--json", "M"}, {"inspect", "--values", "M"}, {"inspect", "--by", "module", "M"},
	{"verify", "M", "M", "--samples", "2"}, {"verify", "M", "M", "--samples", "1", "--layers"},
	{"memory", "M"}, {"memory", "--training", "M"}, {"memory", "--split", "2", "M"}, {"memory", "--json", "M"},
	{"bench", "--runs", "1", "M"}, {"bench", "--runs", "1", "--profile", "M"},
	{"split", "M", "-n", "2", "-o", "parts"},
}

// command is a random command line.
func (c *testCase) command() []string {
	if c.random.IntN(3) == 0 {
		return c.named(plain[c.random.IntN(len(plain))])
	}
	args := c.compression()
	if c.random.IntN(2) == 0 {
		args = append(args, "--no-verify")
	}
	if c.random.IntN(4) == 0 {
		args = append(args, "--dry-run")
	}
	return append(args, c.named([]string{"M", "-o", "out.onnx"})...)
}

// compression is a random method with random options.
func (c *testCase) compression() []string {
	methods := slices.Concat(quantize.Methods(), quantize.Methods(), prune.Methods(), sparse.Methods())
	m := methods[c.random.IntN(len(methods))]
	c.shrinks = m.Shrinks
	args := []string{m.Command}
	switch m.Command {
	case "sparse":
		args = append(args, "--format", m.Name)
	case "quantize", "prune":
		args = append(args, "--method", m.Name)
	}
	return append(args, c.options(m)...)
}

func (c *testCase) named(args []string) []string {
	named := slices.Clone(args)
	for i, a := range named {
		if a == "M" {
			named[i] = "m.onnx"
		}
	}
	return named
}

// options are values of up to two options of m.
func (c *testCase) options(m *pass.Method) []string {
	var all []*flag.Flag
	pass.Flags(m).VisitAll(func(f *flag.Flag) { all = append(all, f) })
	var args []string
	for range min(c.random.IntN(3), len(all)) {
		f := all[c.random.IntN(len(all))]
		if v := c.value(f); v != "" {
			args = append(args, "--"+f.Name+"="+v)
		}
	}
	return args
}

// value is a value of an option, empty for files, which there are none of.
func (c *testCase) value(f *flag.Flag) string {
	one := func(values ...string) string { return values[c.random.IntN(len(values))] }
	if words := pass.Words(f); words != nil {
		return one(words...)
	}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return one("true", "false")
	}
	if f.Name == "only" || f.Name == "skip" {
		return one("*", "?*")
	}
	if n, err := strconv.ParseFloat(f.DefValue, 64); err == nil && !strings.ContainsAny(f.DefValue, "GMKi") {
		return one("0", "1", "-1", "0.5", "64", f.DefValue, strconv.FormatFloat(2*n, 'g', -1, 64))
	}
	return ""
}
