// Package atomicfile writes files atomically: each is written into a temporary folder next to its final place, flushed
// to the disk and renamed. Temporary folders are locked; those of killed processes are removed by the next process that
// needs one in the same place. It is the only package that creates output files. It must not depend on other packages
// of this module.
package atomicfile
