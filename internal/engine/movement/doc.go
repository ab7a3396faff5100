// Package movement holds the operators that put elements elsewhere without computing with
// them: reshape, transpose, slice, join, gather, scatter, pad, repeat, fill; and those on sequences and optionals.
//
// Nearly all are one of three movements, each generic over the width of an element: by strides, in
// runs at listed offsets, or filling with one element. A type is therefore only a width here,
// and strings move as everything else. The package must not know graphs, plans or other families.
package movement
