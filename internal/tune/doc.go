// Package tune chooses for each weight how it is stored, by what that does to the model's outputs: one weight after another is stored in
// each of several ways and the model run, and of all combinations the smallest is looked for that holds the gates.
//
// It must not know particular methods, flags or terminals.
package tune
