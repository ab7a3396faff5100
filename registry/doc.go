// Package registry pushes compressed models with their reports to model registries and pulls them: OCI registries,
// MLflow, and folders. A transfer streams, so that its memory does not depend on the size of a model, verifies the
// SHA-256 of every file, and can be repeated after an interruption. It does not compress, evaluate or sign models.
package registry
