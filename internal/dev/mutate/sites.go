package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
)

// A mutant is one replacement in a source file.
type mutant struct {
	Package string `json:"package"`
	File    string `json:"file"` // in the module
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Before  string `json:"before"`
	After   string `json:"after"`

	path       string // of the file
	from, size int    // of Before in the file
	dir        string // of the package
}

// key identifies a mutant as long as its file does not change before it.
func (m mutant) key() string {
	return fmt.Sprintf("%s:%d:%d %q %q", m.File, m.Line, m.Column, m.Before, m.After)
}

// operators are the replacements of binary operators.
var operators = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ,
	token.NEQ:  token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.SHL: token.SHR, token.SHR: token.SHL, token.AND: token.OR,
	token.OR: token.AND,
}

// names are the replacements of functions and constants.
var names = map[string]string{"true": "false", "false": "true", "min": "max", "max": "min", "Floor": "Ceil",
	"Ceil": "Floor"}

// A finder collects the mutants of a file.
type finder struct {
	fset  *token.FileSet
	text  []byte
	base  mutant // package and file
	lines map[int]bool
	found []mutant
}

// mutants are those of the files of p, without tests, in the given lines; nil for all.
func (p *pkg) mutants(lines map[string]map[int]bool) ([]mutant, error) {
	var all []mutant
	for _, path := range p.files() {
		name := relative(path)
		if lines != nil && lines[name] == nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f := &finder{fset: token.NewFileSet(), text: text,
			base: mutant{Package: p.ImportPath, File: name, path: path, dir: p.Dir}, lines: lines[name]}
		tree, err := parser.ParseFile(f.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(tree) {
			continue
		}
		for _, d := range tree.Decls {
			if body, ok := d.(*ast.FuncDecl); ok && body.Body != nil {
				ast.Inspect(body.Body, f.visit)
			}
		}
		all = append(all, f.found...)
	}
	return all, nil
}

// visit adds the mutants of a node.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if to, ok := operators[n.Op]; ok && !isText(n.X) && !isText(n.Y) {
			f.replace(n.OpPos, len(n.Op.String()), to.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.replace(n.OpPos, 1, "")
		}
	case *ast.BasicLit:
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil && n.Kind == token.INT {
			f.replace(n.Pos(), len(n.Value), strconv.FormatInt(i+1, 10))
		} else if n.Kind == token.FLOAT {
			f.replace(n.Pos(), len(n.Value), "(2*"+n.Value+")")
		}
	case *ast.Ident:
		if to, ok := names[n.Name]; ok {
			f.replace(n.Pos(), len(n.Name), to)
		}
	case *ast.IncDecStmt:
		to := "--"
		if n.Tok == token.DEC {
			to = "++"
		}
		f.replace(n.TokPos, 2, to)
	case *ast.ExprStmt: // a call without results
		f.replace(n.Pos(), int(n.End()-n.Pos()), "")
	case *ast.AssignStmt:
		if n.Tok == token.ASSIGN || n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
			f.replace(n.Pos(), int(n.End()-n.Pos()), "")
		}
	case *ast.ReturnStmt:
		if k := len(n.Results); k > 0 {
			if last, ok := n.Results[k-1].(*ast.Ident); ok && last.Name == "err" {
				f.replace(last.Pos(), len("err"), "nil")
			}
		}
	case *ast.BranchStmt:
		if n.Tok == token.CONTINUE && n.Label == nil {
			f.replace(n.Pos(), len("continue"), "break")
		}
	}
	return true
}

// isText reports whether an expression is a string literal: its operator concatenates messages.
func isText(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.STRING
}

// replace adds a mutant, if it is in the lines to be changed.
func (f *finder) replace(at token.Pos, size int, after string) {
	p := f.fset.Position(at)
	if f.lines != nil && !f.lines[p.Line] {
		return
	}
	m := f.base
	m.Line, m.Column, m.After = p.Line, p.Column, after
	m.from, m.size = p.Offset, size
	m.Before = string(f.text[p.Offset : p.Offset+size])
	f.found = append(f.found, m)
}
