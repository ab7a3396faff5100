// Package inspection holds the content of a model as data: files, operators, data types, and each constant with its
// size and consumers.
//
// It holds results only and reads no model.
package inspection
