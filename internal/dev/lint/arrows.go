package lint

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// methods are the packages that hold compression methods: all may import the same.
var methods = []string{"quantize", "prune", "sparse", "distill"}

// Arrows maps each part of the module to the parts that it may import. A part covers the packages below it: ir includes
// ir/opset. A part that is not listed may import everything.
func Arrows() map[string][]string {
	allowed := map[string][]string{
		"ir":                  {},
		"internal/kernel":     {},
		"internal/atomicfile": {},
		"internal/bounded":    {},
		"internal/journal":    {"internal/atomicfile", "internal/bounded", "internal/fleet", "ir"},
		"internal/invariants": {},
		"internal/manifest":   {},
		"internal/memory":     {"ir"},
		// pass holds what methods share, and that includes reading weights with kernels.
		"pass":               {"ir", "internal/bounded", "internal/kernel", "internal/memory"},
		"internal/pack":      {"internal/bounded", "internal/kernel", "internal/untrusted", "ir"},
		"internal/remote":    {"internal/atomicfile", "internal/bounded", "internal/redact", "internal/retry", "onnx"},
		"internal/retry":     {},
		"s3":                 {"internal/remote"},
		"onnx":               {"ir", "internal/atomicfile", "internal/bounded", "internal/filestate", "internal/pack"},
		"internal/untrusted": {},
		"internal/redact":    {},
		"internal/filestate": {},
		"internal/webp":      {},
		"internal/engine":    {"ir", "internal/bounded", "internal/kernel", "internal/memory", "internal/webp"},
		"internal/dataset":   {"ir", "onnx", "pass", "internal/bounded", "internal/kernel", "internal/remote", "internal/webp"},
		"internal/metric":    {"internal/engine", "internal/dataset", "internal/atomicfile", "ir"},
		"internal/verify":    {"internal/engine", "internal/dataset", "internal/metric", "ir", "report"},
		"internal/profile":   {"internal/engine", "internal/memory"},
		"internal/calibrate": {"pass", "ir", "internal/kernel", "internal/memory", "internal/engine",
			"internal/dataset", "internal/atomicfile", "internal/bounded"},
		// report measures weights with the kernel that defines the order of its sums.
		"report": {"ir", "internal/bounded", "internal/kernel", "pass", "internal/memory"},
		"registry": {"onnx", "ir", "report", "internal/atomicfile", "internal/bounded", "internal/folder",
			"internal/digest", "internal/redact", "internal/retry", "internal/untrusted"},
		"internal/child": {},
		// the program is a user of the library: what it does besides are flags, text and terminals
		"cmd": {"distill", "ir", "pass", "prune", "quantize", "registry", "report", "s3", "sparse",
			"internal/atomicfile", "internal/bounded", "internal/child", "internal/cli", "internal/fleet", "internal/index", "internal/latency",
			"internal/manifest", "internal/memory", "internal/memplan", "internal/metric", "internal/profile"},
		"internal/dev/conform": {}, // it is the reference for the others
		"internal/dev/lint":    {"internal/dev/conform"},
	}
	for _, m := range methods {
		allowed[m] = []string{"pass", "ir", "internal/kernel", "internal/memory", "internal/engine",
			"internal/dataset", "internal/calibrate", "internal/atomicfile", "internal/bounded"}
	}
	// quantize writes small pieces where the checks are compiled in.
	allowed["quantize"] = append(allowed["quantize"], "internal/invariants")
	// distill trains after the steps of pruning methods.
	allowed["distill"] = append(allowed["distill"], "prune", "internal/metric", "internal/profile")
	return allowed
}

// StandardOnly are the parts that import nothing from outside but what is named.
func StandardOnly() map[string][]string {
	return map[string][]string{
		"ir":                  {},
		"internal/atomicfile": {"golang.org/x/sys/windows"},
		"internal/untrusted":  {},
		"internal/kernel":     {"golang.org/x/sys/cpu", "github.com/x448/float16"},
	}
}

func wrongImports(t *Tree) []Problem {
	var found []Problem
	allowed, standard := Arrows(), StandardOnly()
	for _, f := range t.goFiles(built, t.inRootModule) {
		from := part(f.Dir())
		for _, spec := range f.Go.Imports {
			if why := wrongImport(from, importPath(spec), allowed, standard); why != "" {
				found = append(found, t.problem(f, spec.Pos(), "%s", why))
			}
		}
	}
	return found
}

func wrongImport(from, target string, allowed, standard map[string][]string) string {
	inside, ours := strings.CutPrefix(target, Module+"/")
	if ours {
		to := part(inside)
		targets, limited := allowed[from]
		if limited && to != from && !slices.Contains(targets, to) {
			return from + " imports " + to + ": its arrows go to " + list(targets)
		}
		return ""
	}
	extra, limited := standard[from]
	if limited && isThirdParty(target) && !slices.Contains(extra, target) {
		return from + " imports " + target + ": it may use the standard library and " + list(extra)
	}
	return ""
}

// part is the unit that arrows are about: the first folder, below internal the second, below internal/dev the third.
func part(dir string) string {
	elements := strings.Split(dir, "/")
	depth := 1
	switch {
	case strings.HasPrefix(dir, "internal/dev/"):
		depth = 3
	case elements[0] == "internal":
		depth = 2
	}
	return strings.Join(elements[:min(depth, len(elements))], "/")
}

func isThirdParty(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return strings.Contains(first, ".")
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser accepted it
	}
	return p
}

func list(items []string) string {
	if len(items) == 0 {
		return "nothing else"
	}
	return strings.Join(items, ", ")
}
