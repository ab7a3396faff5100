// Package weightcache keeps the packed weights of models in a folder, so that later sessions map them into memory
// instead of reading and packing the weights again. Processes that map the same file share its memory.
//
// Packed weights are identified by the SHA-256 of the model's files, which is computed once for each state of the files
// on disk. See docs/decisions/engine.md. It must not depend on the content of packed weights, which is that of package
// engine.
package weightcache
