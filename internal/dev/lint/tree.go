package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// Module is the import path of the repository's root.
const Module = "github.com/mcompress/mcompress"

// A Tree is the sources of a repository.
type Tree struct {
	Files   []*File
	fset    *token.FileSet
	modules []string // the folders of nested modules
}

// A File is one source. Paths are relative to the root, with slashes.
type File struct {
	Path string
	Text string
	Go   *ast.File // nil for other languages
}

// A Problem is a violation of a rule; its message names the replacement.
type Problem struct {
	Path string
	Line int // 0 for a whole file or folder
	Text string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Path, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
}

// Read reads the sources among the named files of root.
func Read(root fs.FS, names []string) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	for _, name := range names {
		if !isSource(name) {
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		if err := t.add(name, string(text)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func isSource(name string) bool {
	switch path.Ext(name) {
	case ".go", ".mod", ".py", ".md", ".sh", ".yml", ".yaml", ".s", ".html", ".tmpl", ".txtar":
		return true
	case ".json", ".txt":
		return !strings.Contains(name, "testdata/") // outputs of tools
	}
	return path.Base(name) == "Makefile" || strings.HasPrefix(name, ".ci/")
}

func (t *Tree) add(name, text string) error {
	f := &File{Path: filepath.ToSlash(name), Text: text}
	if path.Ext(name) == ".go" {
		parsed, err := parser.ParseFile(t.fset, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		f.Go = parsed
	}
	if path.Base(name) == "go.mod" && f.Dir() != "." {
		t.modules = append(t.modules, f.Dir())
	}
	t.Files = append(t.Files, f)
	return nil
}

// Dir is the folder of the file, "." for the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest reports whether the file is no part of what is built for users.
func (f *File) IsTest() bool {
	return strings.HasSuffix(f.Path, "_test.go") || strings.Contains(f.Path, "testdata/")
}

// IsGenerated reports whether a tool wrote the file.
func (f *File) IsGenerated() bool {
	return strings.Contains(f.Text, "// Code generated ") && strings.Contains(f.Text, " DO NOT EDIT.")
}

// within reports whether the file is in one of the folders, or is one of the files.
func (f *File) within(places ...string) bool {
	for _, p := range places {
		if f.Path == p || strings.HasPrefix(f.Path, p+"/") {
			return true
		}
	}
	return false
}

func (t *Tree) problem(f *File, at token.Pos, format string, args ...any) Problem {
	return Problem{f.Path, t.fset.Position(at).Line, fmt.Sprintf(format, args...)}
}

// goFiles returns the Go files for which all of the conditions hold.
func (t *Tree) goFiles(conditions ...func(*File) bool) []*File {
	var files []*File
next:
	for _, f := range t.Files {
		if f.Go == nil {
			continue
		}
		for _, holds := range conditions {
			if !holds(f) {
				continue next
			}
		}
		files = append(files, f)
	}
	return files
}

func built(f *File) bool { return !f.IsTest() }

// inRootModule leaves out folders with a go.mod of their own, as generators have: they are no part of the program.
func (t *Tree) inRootModule(f *File) bool { return !f.within(t.modules...) }
