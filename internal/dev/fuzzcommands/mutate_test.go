package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/onnx"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Cases depend on their number only, differ from their source, and most of them are models that can be opened.
func TestCases(t *testing.T) {
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	models, err := conform.Matching(root, "fixtures/*.onnx")
	if err != nil || len(models) == 0 {
		t.Fatal("no fixtures", err)
	}
	const n = 60
	opened, equal := 0, 0
	for i := range uint64(n) {
		text := [2][]byte{}
		var c *testCase
		for j := range text {
			c = &testCase{dir: t.TempDir(), random: rand.New(rand.NewPCG(1, i))}
			if err := c.make(context.Background(), models); err != nil {
				t.Fatal(err)
			}
			if text[j], err = os.ReadFile(c.model()); err != nil {
				t.Fatal(err)
			}
		}
		if string(text[0]) != string(text[1]) {
			t.Errorf("case %d is not deterministic", i)
		}
		for _, m := range models {
			if source, err := os.ReadFile(m); err == nil && string(source) == string(text[0]) {
				equal++
			}
		}
		if f, err := onnx.Open(c.model()); err == nil {
			opened++
			f.Close()
		}
	}
	if equal > n/4 || opened < n/2 {
		t.Errorf("of %d cases %d equal their source and %d can be opened", n, equal, opened)
	}
}

// Outputs of runs that crash, print control characters, or leave files are findings.
func TestFindings(t *testing.T) {
	for name, c := range map[string]*testCase{
		"":                        {code: 4, output: "mcompress: m.onnx: no nodes\n"},
		"exit code 139":           {code: 139},
		`the output has "panic:"`: {code: 2, output: "panic: x"},
		`the output has the control character '\x1b'`: {output: "a\x1b[2J"},
		"an error without a message":                  {code: 1},
		"a failed run left out.onnx":                  {code: 4, output: "error", args: []string{"out.onnx"}},
		"a failed run left out.onnx.partial":          {code: 4, output: "error", args: []string{"out.onnx.partial"}},
		"a temporary file is left: out.onnx.part":     {args: []string{"out.onnx.part"}},
		"the output cannot be opened: ":               {args: []string{"out.onnx"}},
	} {
		c.dir = t.TempDir()
		for _, file := range c.args {
			if err := os.WriteFile(filepath.Join(c.dir, file), []byte{0xff}, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.check(); len(got) < len(name) || got[:len(name)] != name || name == "" && got != "" {
			t.Errorf("%q, want %q", got, name)
		}
	}
}
