package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// operatorPlaces are the packages and files whose code is about single operators, with the reason.
func operatorPlaces() map[string]string {
	return map[string]string{
		"internal/engine": "implements operators, and their fusions and gradients by pattern",
		"ir/model.go":     "finds the function that a node calls",
		"ir/opset":        "has the specification of each operator by opset: conversions, shapes and types",
		"sparse":          "finds the nodes that its own layouts consist of",
	}
}

// operatorLists finds decisions by the name of an operator: comparisons and switches on Op.Type, lists that are
// searched for it, and alternatives of several Op.Is. What they select by is a fact about operators, and belongs in the
// table of package ir/operator. A table of functions by operator is a rule and not a fact.
func operatorLists(t *Tree) []Problem {
	var found []Problem
	tables, functions := packageVariables(t), functionTypes(t)
	for _, f := range t.goFiles(built, t.inRootModule) {
		if f.within(slices.Collect(maps.Keys(operatorPlaces()))...) {
			continue
		}
		c := &operatorCheck{functions: functions[f.Dir()], variables: tables[f.Dir()]}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if c.decides(n) {
				found = append(found, t.problem(f, n.Pos(),
					"selects by the name of an operator: use a column of ir/operator"))
			}
			return true
		})
	}
	return found
}

// An operatorCheck holds the declarations of a package.
type operatorCheck struct {
	functions map[string]bool // function types by name
	variables map[string][]*ast.ValueSpec
}

func (c *operatorCheck) decides(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return isOperatorName(n.X) && isString(n.Y) || isOperatorName(n.Y) && isString(n.X)
		}
		return (n.Op == token.LOR || n.Op == token.LAND) && sameNode(n.X, n.Y)
	case *ast.SwitchStmt:
		return isOperatorName(n.Tag)
	case *ast.CaseClause:
		return len(n.List) > 1 && sameNode(n.List[0], n.List[1])
	case *ast.IndexExpr:
		return isOperatorName(n.Index) && c.isList(n.X)
	case *ast.CallExpr:
		return searches(n)
	}
	return false
}

// isOperatorName reports whether e is the name of a node's operator.
func isOperatorName(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		s, ok := call.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Name" && isNamed(s.X, "operator")
	}
	return isOfOperator(e, "Type")
}

// isOfOperator reports whether e is that field or method of a node's operator.
func isOfOperator(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	op, ok := s.X.(*ast.SelectorExpr)
	return ok && op.Sel.Name == "Op"
}

// sameNode reports whether both expressions test the operator of one node by name.
func sameNode(a, b ast.Expr) bool {
	nodes := testedNodes(b)
	return slices.ContainsFunc(testedNodes(a), func(n string) bool { return slices.Contains(nodes, n) })
}

// testedNodes are the nodes, as expressions, to which e applies Op.Is, also negated or among alternatives.
func testedNodes(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return testedNodes(e.X)
	case *ast.UnaryExpr:
		return testedNodes(e.X)
	case *ast.BinaryExpr:
		return append(testedNodes(e.X), testedNodes(e.Y)...)
	case *ast.CallExpr:
		if isOpIs(e) {
			return []string{types.ExprString(e.Fun)}
		}
	}
	return nil
}

func isOpIs(e *ast.CallExpr) bool { return isOfOperator(e.Fun, "Is") }

// searches reports whether a call searches a list for the name of an operator, or tests for one that is not a constant.
func searches(e *ast.CallExpr) bool {
	s, ok := e.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if s.Sel.Name == "Contains" && isNamed(s.X, "slices") && len(e.Args) == 2 {
		return isOperatorName(e.Args[1])
	}
	return isOpIs(e) && len(e.Args) == 1 && !isString(e.Args[0])
}

// isList reports whether e is a package-level map from names to something other than functions.
func (c *operatorCheck) isList(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok || !isGlobal(id, c.variables) {
		return false
	}
	for _, spec := range c.variables[id.Name] {
		if len(spec.Values) == 1 && c.mapsToFunctions(spec.Values[0]) {
			return false
		}
	}
	return true
}

func (c *operatorCheck) mapsToFunctions(e ast.Expr) bool {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	m, ok := lit.Type.(*ast.MapType)
	if !ok {
		return false
	}
	if id, ok := m.Value.(*ast.Ident); ok {
		return c.functions[id.Name]
	}
	_, ok = m.Value.(*ast.FuncType)
	return ok
}

// functionTypes are the names of function types by folder.
func functionTypes(t *Tree) map[string]map[string]bool {
	byFolder := map[string]map[string]bool{}
	for _, f := range t.goFiles(built) {
		if byFolder[f.Dir()] == nil {
			byFolder[f.Dir()] = map[string]bool{}
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if _, function := s.Type.(*ast.FuncType); function {
					byFolder[f.Dir()][s.Name.Name] = true
				}
			}
			return true
		})
	}
	return byFolder
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func isString(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}
