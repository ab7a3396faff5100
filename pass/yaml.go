package pass

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of recipes. A deeper or larger document takes the parser gigabytes.
const (
	// MaxRecipe is the maximum size of a recipe in bytes.
	MaxRecipe = 1 << 20
	// maxNesting is the maximum number of open collections; a recipe has 4. A key and its value count as levels of
	// their line.
	maxNesting = 32
)

// ParseYAML decodes the only document of text, which is at most MaxRecipe bytes, into doc. Unknown fields, anchors and
// aliases are errors.
func ParseYAML(text []byte, doc any) error {
	if len(text) > MaxRecipe {
		return fmt.Errorf("more than %d bytes", MaxRecipe)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	// The lexer alone, as the parser takes gigabytes for 100 KB of brackets: nesting is checked before it runs.
	tokens := lexer.Tokenize(string(text))
	if err := checkTokens(tokens); err != nil {
		return err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return oneLine(err)
	}
	body, err := onlyDocument(file)
	if err != nil || body == nil {
		return err
	}
	if err := yaml.NodeToValue(body, doc, yaml.Strict()); err != nil {
		return oneLine(err)
	}
	return nil
}

// checkTokens bounds the nesting before the parser runs, and refuses aliases, which repeat content.
func checkTokens(tokens token.Tokens) error {
	flow := 0
	var columns []int // of the tokens to the left that the current one may be part of
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return fmt.Errorf("line %d: anchors and aliases are not supported", t.Position.Line)
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		}
		// Within brackets columns have no meaning, and flow counts the levels.
		if flow <= 0 {
			for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, t.Position.Column)
		}
		if len(columns)+flow > maxNesting {
			return fmt.Errorf("line %d: nested deeper than %d levels", t.Position.Line, maxNesting)
		}
	}
	return nil
}

// onlyDocument is the content of the only document that has any; nil if there is none.
func onlyDocument(file *ast.File) (ast.Node, error) {
	var body ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil:
		case body != nil:
			return nil, fmt.Errorf("line %d: a second document; a recipe is one", d.Body.GetToken().Position.Line)
		default:
			body = d.Body
		}
	}
	return body, nil
}

// oneLine is an error of the parser as one line.
func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(strings.TrimSpace(yaml.FormatError(err, false, false)), "\n", " "))
}
