package lint

// A Rule is a check of the whole tree.
type Rule struct {
	Name  string
	Check func(*Tree) []Problem
}

// Rules are all of them. A new rule is a row here and a row in the tests, which require a
// bad sample of each.
func Rules() []Rule {
	return []Rule{
		{"gofmt", unformatted},
		{"arrows", wrongImports},
		{"banned imports", bannedImports},
		{"banned calls", bannedCalls},
		{"decoders", unboundedDecoders},
		{"init", initFunctions},
		{"globals", changedGlobals},
		{"operators", operatorLists},
		{"errors", errorTexts},
		{"exports", unusedExports},
		{"reason codes", unusedCodes},
		{"race", raceTests},
		{"stubs", stubs},
		{"machine paths", machinePaths},
		{"hosts", hosts},
		{"package doc", undocumentedPackages},
		{"examples", missingExamples},
	}
}
