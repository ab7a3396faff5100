// Package random holds the operators that generate random numbers.
//
// The numbers depend on the seed of the node or else of the session, the node's name, and the number of its earlier
// runs. They do not depend on the number of workers, since every piece of a tensor has a stream of its own. The package
// must not know graphs, plans or other families.
package random
