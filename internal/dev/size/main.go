// Package main measures what the parts of the program cost whoever installs it: the processor time that compiles them,
// from an empty build cache, and their machine code in the binary. It prints the table of docs/decisions/cost-of-parts.md. A
// part costs all packages that the program would not have without it.
//
//	go run ./internal/dev/size
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	module  = "github.com/mcompress/mcompress/"
	program = module + "cmd/mcompress"
)

// parts are packages by what they do. Parts overlap: a package that two of them need is in neither, and is if one of
// them is a package of the other.
var parts = []struct {
	name     string
	packages []string
}{
	{"engine", []string{module + "internal/engine"}},
	{"training: `finetune`, `distill`", []string{module + "distill", module + "internal/engine/grad"}},
	{"pruning", []string{module + "prune"}},
	{"reports", []string{module + "report"}},
	{"canonical JSON: jsontext", []string{"github.com/go-json-experiment/json/jsontext"}},
	{"registries", []string{module + "registry", module + "registry/oci", module + "registry/mlflow"}},
	{"OCI: oras-go", []string{
		"oras.land/oras-go/v2/registry", "oras.land/oras-go/v2/registry/remote",
		"oras.land/oras-go/v2/registry/remote/auth",
		"oras.land/oras-go/v2/registry/remote/credentials", "oras.land/oras-go/v2/content",
	}},
	{"object storage, web servers", []string{module + "internal/remote"}},
	{"S3 signatures and credentials: minio-go", []string{module + "s3"}},
	{"HTTP and TLS", []string{"net/http"}},
	{"packing", []string{module + "internal/pack"}},
	{"FSE and Zstandard: klauspost/compress", []string{"github.com/klauspost/compress/fse",
		"github.com/klauspost/compress/zstd"}},
	{"signatures", []string{module + "internal/sign"}},
	{"ONNX Runtime as backend", []string{module + "internal/engine/ort"}},
	{"splitting for devices", []string{module + "internal/partition", module + "internal/pipeline"}},
	{"`encoding/gob`", []string{"encoding/gob"}},
	{"recipes: go-yaml", []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast",
		"github.com/goccy/go-yaml/parser"}},
	{"pictures: WebP, scaling", []string{"golang.org/x/image/draw", "golang.org/x/image/webp"}},
	{"Fourier transforms: gonum", []string{"gonum.org/v1/gonum/dsp/fourier"}},
	{"progress bar: mpb", []string{"github.com/vbauerster/mpb/v8", "github.com/vbauerster/mpb/v8/decor",
		"github.com/vbauerster/mpb/v8/cwriter"}},
	{"manual page: md2man", []string{"github.com/cpuguy83/go-md2man/v2/md2man"}},
	{"templates: `html/template`", []string{"html/template", "text/template"}},
}

// A cost is that of a package or of several.
type cost struct {
	packages int
	seconds  float64
	bytes    int64
}

func (c *cost) add(d cost) {
	c.packages += d.packages
	c.seconds += d.seconds
	c.bytes += d.bytes
}

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func measure() error {
	dir, err := os.MkdirTemp("", "size")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	imports, err := importsOf()
	if err != nil {
		return err
	}
	costs, err := costsOf(dir)
	if err != nil {
		return err
	}
	all := reachable(imports, nil)
	fmt.Println("| part | packages | seconds | % of all | MB of machine code |\n|---|---:|---:|---:|---:|")
	total := sum(costs, all, nil)
	for _, p := range parts {
		for _, name := range p.packages {
			if !all[name] {
				return fmt.Errorf("%s: the program does not have %s", p.name, name)
			}
		}
		show(p.name, sum(costs, all, reachable(imports, p.packages)), total)
	}
	groups := map[string]cost{}
	for name := range all {
		g := groups[groupOf(name)]
		g.add(costs[name])
		groups[groupOf(name)] = g
	}
	for _, name := range []string{own, other, standard} {
		show(name, groups[name], total)
	}
	show("**all**", total, total)
	return nil
}

const (
	own      = "packages of mcompress"
	other    = "other modules"
	standard = "standard library, and linking"
)

func groupOf(name string) string {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case strings.HasPrefix(name, module) || name+"/" == module:
		return own
	case strings.Contains(first, "."):
		return other
	}
	return standard
}

func show(name string, c, total cost) {
	fmt.Printf("| %s | %d | %.1f | %.1f | %.2f |\n", name, c.packages, c.seconds, 100*c.seconds/total.seconds,
		float64(c.bytes)/1e6)
}

// importsOf are the imports of each package of the program.
func importsOf() (map[string][]string, error) {
	out, err := command(nil, "list", "-deps", "-json=ImportPath,Imports,ImportMap", "./cmd/mcompress")
	if err != nil {
		return nil, err
	}
	imports := map[string][]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p struct {
			ImportPath string
			Imports    []string
			ImportMap  map[string]string
		}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		for i, name := range p.Imports {
			if mapped, ok := p.ImportMap[name]; ok { // vendored in the standard library
				p.Imports[i] = mapped
			}
		}
		imports[p.ImportPath] = p.Imports
	}
	return imports, nil
}

// reachable are the packages that the program has without some of them. The runtime is imported by all, and by none.
func reachable(imports map[string][]string, without []string) map[string]bool {
	seen := map[string]bool{}
	todo := []string{program, "runtime"}
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[name] || slices.Contains(without, name) {
			continue
		}
		seen[name] = true
		todo = append(todo, imports[name]...)
	}
	return seen
}

// sum is the cost of the packages that are in all and not in rest.
func sum(costs map[string]cost, all, rest map[string]bool) (total cost) {
	for name := range all {
		if !rest[name] {
			total.add(costs[name])
		}
	}
	return total
}

// costsOf builds the program from an empty build cache, and returns the cost of each package.
func costsOf(dir string) (map[string]cost, error) {
	binary, graph := filepath.Join(dir, "mcompress"), filepath.Join(dir, "actions.json")
	if _, err := command([]string{"GOCACHE=" + filepath.Join(dir, "cache")}, "build", "-debug-actiongraph="+graph,
		"-o", binary, "./cmd/mcompress"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(graph)
	if err != nil {
		return nil, err
	}
	var actions []struct {
		Mode, Package   string
		CmdUser, CmdSys int64 // nanoseconds
	}
	if err := json.Unmarshal(text, &actions); err != nil {
		return nil, err
	}
	costs := map[string]cost{}
	for _, a := range actions {
		seconds := float64(a.CmdUser+a.CmdSys) / 1e9
		switch a.Mode {
		case "build":
			c := costs[a.Package]
			c.packages, c.seconds = 1, c.seconds+seconds
			costs[a.Package] = c
		case "link": // the time of all packages; runtime is that which no part can be without
			c := costs["runtime"]
			c.seconds += seconds
			costs["runtime"] = c
		}
	}
	return costs, addBytes(costs, binary)
}

// addBytes adds the sizes of functions to the packages that they are named after. Data is not counted: symbols of the
// linker, such as its table of lines, span that of all packages.
func addBytes(costs map[string]cost, binary string) error {
	out, err := command(nil, "tool", "nm", "-size", binary)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			continue
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || !strings.EqualFold(fields[2], "t") {
			continue
		}
		name := packageOf(fields[3])
		if c, ok := costs[name]; ok {
			c.bytes += size
			costs[name] = c
		}
	}
	return nil
}

// packageOf is the package of a symbol, such as a/b.F, a/b.(*T).M or type:.eq.a/b.T.
func packageOf(symbol string) string {
	for _, prefix := range []string{"type:.eq.", "go:itab.*", "go:itab."} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	symbol, _, _ = strings.Cut(symbol, "[") // type arguments have slashes
	slash := strings.LastIndex(symbol, "/") + 1
	name, _, _ := strings.Cut(symbol[slash:], ".")
	return strings.ReplaceAll(symbol[:slash]+name, "%2e", ".")
}

// command runs the go command and returns its output.
func command(environment []string, args ...string) ([]byte, error) {
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), environment...)
	c.Stderr = os.Stderr
	return c.Output()
}
