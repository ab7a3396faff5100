// Package tune is the mixed-precision search of --auto: it measures the sensitivity of the outputs to each candidate
// method for each weight, and searches the Pareto front of file size and sensitivity for the smallest model that holds
// the gates.
//
// It must not know particular methods, flags or terminals.
package tune
