// Package manifest writes the files by which a scheduler runs the workers of a plan and then completes its result: the
// manifest of Kubernetes Jobs, and a script for Slurm.
package manifest
