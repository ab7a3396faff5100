// Package weights finds weights and their consumers: products, lookups and layers that read a constant, how each sees
// it, and which axes have independent scales.
package weights
