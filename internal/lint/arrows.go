package lint

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// methods are the packages that hold compression methods: all may import the same.
var methods = []string{"quantize", "prune", "sparse", "distill"}

// arrows says for each part of the module which other parts it may import. ir stands
// for ir/opset too. A part that is not here may import everything, as cmd may.
func arrows() map[string][]string {
	allowed := map[string][]string{
		"ir":     {},
		"kernel": {},
		"memory": {"ir"},
		// pass holds what methods share, and that includes reading weights with kernels.
		"pass":    {"ir", "kernel"},
		"onnx":    {"ir"},
		"engine":  {"ir", "kernel", "memory"},
		"dataset": {"ir", "onnx", "kernel"},
		"verify":  {"engine", "dataset", "ir"},
		// report measures weights with the kernel that defines the order of its sums.
		"report":           {"ir", "kernel", "pass", "memory", "verify"},
		"internal/conform": {}, // it judges the others
		"internal/lint":    {"internal/conform"},
	}
	for _, m := range methods {
		allowed[m] = []string{"pass", "ir", "kernel", "engine", "dataset"}
	}
	return allowed
}

// standardOnly are the parts that import nothing from outside but what is named.
func standardOnly() map[string][]string {
	return map[string][]string{
		"ir":     {},
		"kernel": {"golang.org/x/sys/cpu"},
	}
}

func wrongImports(t *Tree) []Problem {
	var found []Problem
	allowed, standard := arrows(), standardOnly()
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

// part is the unit that arrows speak of: the first folder, and below internal the second.
func part(dir string) string {
	elements := strings.SplitN(dir, "/", 3)
	if elements[0] == "internal" && len(elements) > 1 {
		return "internal/" + elements[1]
	}
	return elements[0]
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
