package lint

import (
	"go/ast"
	"slices"
)

// decoders are functions that allocate what a text asks for, by the packages that have them.
var decoders = map[string][]string{
	"encoding/gob":                                {"NewDecoder"},
	"encoding/json":                               {"NewDecoder", "Unmarshal"},
	"encoding/xml":                                {"NewDecoder", "NewTokenDecoder", "Unmarshal"},
	"github.com/go-json-experiment/json":          {"Unmarshal", "UnmarshalDecode", "UnmarshalRead"},
	"github.com/goccy/go-yaml":                    {"NewDecoder", "NodeToValue", "Unmarshal", "UnmarshalContext", "UnmarshalWithOptions", "YAMLToJSON"},
	"github.com/goccy/go-yaml/lexer":              {"Tokenize"},
	"github.com/goccy/go-yaml/parser":             {"Parse", "ParseBytes", "ParseFile"},
	"github.com/go-json-experiment/json/jsontext": {"NewDecoder"},
}

// trusted are the places that may call decoders, with the reason.
var trusted = map[string]string{
	"internal/bounded":             "it is the reader with limits",
	"internal/child":               "a process of this program answers",
	"internal/metric/command.go":   "a program that the user names answers, in at most 64 KiB",
	"internal/pipeline/process.go": "a process of this program answers",
	"internal/dev":                 "tools of developers, on files of this repository",
	"packaging":                    "tools of developers, on outputs of the Go command",
}

// unboundedDecoders finds decoders of text that may come from elsewhere: a few bytes of it, such as {},{}, take hundreds
// of bytes of memory each.
func unboundedDecoders(t *Tree) []Problem {
	var places []string
	for place := range trusted {
		places = append(places, place)
	}
	var found []Problem
	for _, f := range t.goFiles(built) {
		if f.within(places...) {
			continue
		}
		imports := importNames(f.Go)
		if target, ok := imports["go-yaml"]; ok {
			imports["yaml"] = target // the name of that package
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			for target, names := range decoders {
				if slices.Contains(names, s.Sel.Name) && qualified(s, imports) == target+"."+s.Sel.Name {
					found = append(found, t.problem(f, s.Pos(),
						"uses %s.%s: decode with internal/bounded, which limits memory, depth and time", target, s.Sel.Name))
				}
			}
			return true
		})
	}
	return found
}
