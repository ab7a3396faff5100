package bounded

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

// Limits of YAML. A deeper or larger document takes the parser gigabytes.
const (
	// MaxYAML is the maximum size of a document in bytes.
	MaxYAML = 1 << 20
	// maxNesting is the maximum number of open collections; a recipe has 4. A key and its value count as levels of
	// their line.
	maxNesting = 32
	// maxMarks is the maximum number of characters that may begin a token: tokens take 300 bytes and more each, and the
	// time of the parser is quadratic in those of an empty list: a second for as many.
	maxMarks = 1 << 16
	// maxDocuments is the maximum number of lines ---: the parser copies what is left for each.
	maxDocuments = 16
)

// StrictYAML decodes the only document of text, which is at most MaxYAML bytes, into doc. Unknown fields, anchors and
// aliases are errors.
func StrictYAML(text []byte, doc any) error { return decodeYAML(text, doc, yaml.Strict()) }

// YAML is StrictYAML for documents of others, which may have more fields.
func YAML(text []byte, doc any) error { return decodeYAML(text, doc) }

func decodeYAML(text []byte, doc any, options ...yaml.DecodeOption) error {
	if len(text) > MaxYAML {
		return errorf("more than %d bytes", MaxYAML)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	if countMarks(text) > maxMarks {
		return errorf("more than %d items and keys", maxMarks)
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
	if err := yaml.NodeToValue(body, doc, options...); err != nil {
		return oneLine(err)
	}
	return nil
}

// countMarks is the number of lines, and of characters that have a meaning in YAML.
func countMarks(text []byte) (n int) {
	before := byte('\n')
	for _, c := range text {
		// In names a dash is a letter.
		if c == '-' && (before == ' ' || before == '\n' || before == '-') || strings.IndexByte("\n,:[]{}?#&*!|>%@`'\"", c) >= 0 {
			n++
		}
		before = c
	}
	return n
}

// checkTokens bounds the nesting before the parser runs, and refuses aliases, which repeat content.
func checkTokens(tokens token.Tokens) error {
	flow, documents := 0, 0
	var columns []int // of the tokens to the left that the current one may be part of
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return fmt.Errorf("line %d: anchors and aliases are not supported", t.Position.Line)
		case token.DocumentHeaderType, token.DocumentEndType:
			if documents++; documents > maxDocuments {
				return errorf("line %d: more than %d documents", t.Position.Line, maxDocuments)
			}
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
