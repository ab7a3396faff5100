// Package text holds the operators that look into strings: joining, splitting, normalizing, matching, and
// counting n-grams.
//
// Where strings are only moved they belong to package movement. The package must not know graphs, plans or other families.
package text
