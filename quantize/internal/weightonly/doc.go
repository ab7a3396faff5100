// Package weightonly stores weights as integers and keeps float arithmetic. It finds the weights, plans the form and
// encoding of each, and emits them.
package weightonly
