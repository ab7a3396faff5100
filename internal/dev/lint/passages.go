package lint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// A passage is text that people read: a comment, a string literal, a declared name split into words, a document.
type passage struct {
	line int
	text string
	name string // the identifier or file whose words text is
}

// passages returns the texts of a file. Python, shell and documents are one passage.
func (t *Tree) passages(f *File) []passage {
	base := strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path))
	list := []passage{{0, words(base), path.Base(f.Path)}}
	if path.Ext(f.Path) == ".json" {
		return append(list, descriptions(f.Text)...)
	}
	if f.Go == nil {
		return append(list, passage{1, f.Text, ""})
	}
	line := func(at token.Pos) int { return t.fset.Position(at).Line }
	for _, group := range f.Go.Comments {
		list = append(list, passage{line(group.Pos()), uncommented(t, group), ""})
	}
	ast.Inspect(f.Go, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				list = append(list, passage{line(n.Pos()), keys.ReplaceAllString(escapes.Replace(n.Value), ""), ""})
			}
		default:
			for _, id := range declared(n) {
				list = append(list, passage{line(id.Pos()), words(id.Name), id.Name})
			}
		}
		return true
	})
	return list
}

// descriptions are the texts of a JSON schema; the other strings are keys and values of a format.
func descriptions(text string) []passage {
	var list []passage
	for _, at := range described.FindAllStringSubmatchIndex(text, -1) {
		list = append(list, passage{1 + strings.Count(text[:at[2]], "\n"), text[at[2]:at[3]], ""})
	}
	return list
}

var described = regexp.MustCompile(`"(?:title|description)": "((?:[^"\\]|\\.)*)"`)

// keys are names in JSON and YAML, which outlive words: readers of files depend on them.
var keys = regexp.MustCompile(`\b(?:json|yaml):"[^"]*"`)

var escapes = strings.NewReplacer(`\n`, "  ", `\t`, "  ")

// uncommented is the text of a group of comments, a line for each of its lines.
func uncommented(t *Tree, group *ast.CommentGroup) string {
	var b strings.Builder
	first := t.fset.Position(group.Pos()).Line
	for _, c := range group.List {
		for first+strings.Count(b.String(), "\n") < t.fset.Position(c.Pos()).Line {
			b.WriteByte('\n')
		}
		if strings.HasPrefix(c.Text, "//go:") {
			continue
		}
		b.WriteString(strings.Trim(strings.TrimPrefix(c.Text, "//"), "/*"))
	}
	return b.String()
}

// declared are the names that a node declares.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return idents(n.Lhs)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return idents([]ast.Expr{n.Key, n.Value})
		}
	}
	return nil
}

func idents(list []ast.Expr) []*ast.Ident {
	var names []*ast.Ident
	for _, e := range list {
		if id, ok := e.(*ast.Ident); ok {
			names = append(names, id)
		}
	}
	return names
}

var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])|_`)

// words splits a name: TestRunIsCopied → Test Run Is Copied.
func words(name string) string { return boundary.ReplaceAllString(name, "$1 $2") }
