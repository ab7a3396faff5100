// Package folder takes over the files that a model needs besides its own when it is written to another folder:
// configuration, tokenizer, other models. It edits the configuration, which names the model's file and the number of
// its layers, and does not depend on compression methods.
package folder
