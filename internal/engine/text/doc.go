// Package text holds the operators that read strings: concatenation, splitting, normalization, matching, and counting
// of n-grams.
//
// Operators that only copy strings belong to package movement. The package must not know graphs, plans or other
// families.
package text
