package main

import "runtime/debug"

// recipeShare is the part of the memory limit that running recipes may hold: the rest is
// for the skeleton, the report and what the collector has not yet taken back.
const recipeShare = 2

// limitMemory makes the garbage collector work harder rather than let the heap grow
// beyond limit bytes.
func limitMemory(limit int64) { debug.SetMemoryLimit(limit) }

// beside is what the program takes beside the arrays that training holds.
const beside = 32 << 20

// holds makes room for so many bytes that are held at once: a collector that worked against them would run all the time.
func (t *tool) holds(bytes int64) { limitMemory(max(int64(t.memory), bytes+bytes/16+beside)) }

// recipeBudget is what running recipes may hold under the limit.
func recipeBudget(limit int64) int64 { return max(1, limit/recipeShare) }
