// Package memory plans memory from lifetimes and bytes: it assigns blocks to offsets in one arena, computes the live
// bytes at each step of a run, and finds the largest batch for a budget.
//
// It must not know operators, graphs or files. The caller defines blocks with their first write and last read;
// inference and training are alike.
package memory
