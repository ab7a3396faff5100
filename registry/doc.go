// Package registry pushes compressed models with their reports to model registries and pulls them: OCI registries,
// MLflow, and folders. A transfer streams, so that its memory does not depend on the size of a model, verifies the
// SHA-256 of every file, and can be repeated after an interruption. It does not compress, evaluate or sign models.
//
// Folders are built in. Packages registry/oci and registry/mlflow add the kinds of registries that they are named after
// to a program that imports them, and [Register] adds others.
package registry
