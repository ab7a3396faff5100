// Package movement holds the operators that copy elements without computing with them: reshape, transpose, slice,
// concat, gather, scatter, pad, tile, fill; and those on sequences and optionals.
//
// Nearly all are one of three transfers, each generic over the width of an element: by strides, in contiguous runs at
// listed offsets, or filling with one element. A type is therefore only a width here, and strings are copied like other
// elements. The package must not know graphs, plans or other families.
package movement
