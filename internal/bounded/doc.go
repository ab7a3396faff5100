// Package bounded reads text from elsewhere: JSON, YAML and XML of models, reports, registries and repositories. Before a
// decoder allocates memory for a text, its size, its depth and the memory of its values are compared with limits, in time
// linear in the text.
//
// It must not know what the texts are about.
package bounded
