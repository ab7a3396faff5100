// Package quantize stores weights in fewer bits. Each method is one file; the
// arithmetic they share is a scheme (which codes), a grid (which elements share a
// scale) and the recipes that stream a weight through both.
//
// It knows no file format and no report.
package quantize
