// Package evidence compares a model with its report: the digests of files, of the report and of its recipe, the
// metadata of the model, and the figures of the report with each other.
package evidence
